// Package relay is what servers that present the same logical unit say to each other about
// commands: one of them serves the unit, and the others relay to it what comes to them.
//
// A server tells the one that serves the unit of each I_T_L nexus (Begin) before it sends
// commands of it (Execute), with the first part of their Data-Out. The answer has status,
// sense data and the last part of Data-In. Of commands with more data the serving server asks
// for the rest of Data-Out (Want), and sends Data-In ahead of the answer (Part). Each message
// is one byte of version and one of type, and then fields in network order. Nothing here does
// any I/O.
package relay
