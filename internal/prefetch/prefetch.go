// Package prefetch asks the processor for memory that will be needed soon, so that
// it is fetched while other work is done. On processors for which there is no
// assembler here it does nothing.
package prefetch
