// Package kernelqtcp loads QTCP as a congestion control of the kernel (BPF struct_ops): what
// the governor of package tcp does in the process, connection by connection in the kernel,
// with acknowledgements as they come. Load needs CAP_BPF and CAP_NET_ADMIN, and pins what it
// loads, so that a server needs neither: it chooses the congestion control by its name, and
// writes the shares of connections to the map.
//
// bpf/qtcp.bpf.c is the source of bpf/qtcp.bpf.o, which bpf/build.sh compiles. Offsets are found when it
// is loaded (CO-RE), so one object serves kernels from 6.0 on.
package kernelqtcp
