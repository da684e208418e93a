// Package decode takes the PDUs of a trace apart, for the control API. It knows headers
// alone: data never come here.
package decode
