// Package verbs is the part of RDMA that an iSER target (and the model of an
// initiator that tests it) needs, as Go interfaces: devices, protection
// domains, memory regions, completion queues, queue pairs, and the connection
// manager's events. It follows libibverbs and librdmacm closely, with their
// terms. iser/verbs/native implements it with these libraries, iser/verbs/fake
// inside the process with the rules of hardware.
//
// # Threads
//
// Control calls (everything that creates, registers, accepts, rejects,
// disconnects or destroys) may block and belong on control goroutines. Objects
// may be used by any goroutine, one at a time: the caller orders the calls on
// one object. The exceptions are PostSend and PostRecv of a QP, which may run
// beside control calls on its ID, except its destruction.
//
// PostSend, PostRecv, Poll, Arm and Drain are the data path. They do not block,
// do not allocate, and belong to one event thread each.
//
// # Memory
//
// Memory that hardware reads or writes is never memory of the Go heap: it is
// mapped, registered once, and stays mapped until its region is deregistered.
// Addresses cross this interface as numbers (Addr), so that lists of work hold
// no pointers. Lists are read during the call only and may be reused at once;
// the memory that their entries name is the hardware's from the post until the
// completion is polled. Memory of entries with FlagInline is free again when
// the post returns; it need not be registered and may be of the Go heap, but
// not of a stack.
//
// # Errors
//
// Data path calls return a bare syscall.Errno, control calls wrap one, with the
// name of the library's function.
//
// # Ends
//
// A QP fails as a whole: after the first completion that is no success, or
// after Disconnect, every entry that was posted completes with StatusFlushed,
// unsignaled ones too. An entry that is posted later to the send queue is flushed as
// well; a receive that is posted later may complete so, or never (Soft-RoCE
// does not look at its receive queue any more). The order of an orderly end is:
// Disconnect, poll until each posted entry is accounted for, in bounded time,
// QP.Destroy, which gives back what is left, ID.Destroy. Regions, completion
// queues, channels and protection domains are destroyed after what uses them.
package verbs
