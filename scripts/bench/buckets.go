package main

import (
	"fmt"
	"regexp"
	"strings"
)

// bucket is a part of a command's way; a symbol belongs to the first whose pattern
// it matches.
type bucket struct {
	kernel  bool
	name    string
	pattern *regexp.Regexp
}

var buckets = []bucket{
	{true, "copying between user memory and sockets", regexp.MustCompile(`^(_copy_|copy_|__memcpy|rep_movs|memcpy)`)},
	{true, "backing file of what is written back", regexp.MustCompile(`^(shmem|filemap|xas_|xa_|folio|generic_perform_write|vfs_|balance_dirty|file_|simple_)`)},
	{true, "TCP, IP and loopback", regexp.MustCompile(`tcp|skb|^(ip_|__ip|inet|__inet|bbr|net_|__net|dev_|__dev|loopback|sk_|__sk|sock_|__sock|lock_sock|release_sock|process_backlog|validate_xmit|nf_|eth_|kmem|kfree|__alloc|__kmalloc|alloc_|free_|__free|get_page|page_frag|rmqueue|napi|enqueue_to|handle_softirqs|do_softirq|__do_softirq|__local_bh|mod_timer|__mod_timer|ktime|read_tsc|kvm_clock|__check_object|__virt_addr|check_stack)`)},
	{true, "waking and sleeping", regexp.MustCompile(`wake|sched|finish_task_switch|futex|hrtimer|timer|rq_|_rq|switch|epoll|ep_`)},
	{true, "system call entry and the rest of the kernel", regexp.MustCompile(``)},
	{false, "TCP transport: parsing, gathering, digests", regexp.MustCompile(`target\.\(\*(tcpMover|txState|rxState|outgoing)\)|target/pdu|target\.Batch`)},
	{false, "iSCSI: tasks, command window, responses", regexp.MustCompile(`^lunar/target\.`)},
	{false, "SCSI", regexp.MustCompile(`^lunar/target/scsi`)},
	{false, "scheduler", regexp.MustCompile(`^lunar/scheduler`)},
	{false, "cache", regexp.MustCompile(`^lunar/cache|golang-lru|aeshash|mapaccess`)},
	{false, "backing store", regexp.MustCompile(`^lunar/backstore`)},
	{false, "copying into the cache", regexp.MustCompile(`memmove|^lunar/internal/memcopy`)},
	{false, "prefetching what is about to be sent", regexp.MustCompile(`^lunar/internal/prefetch`)},
	{false, "event loop, buffers, system call stubs", regexp.MustCompile(`^lunar/internal|[sS]yscall|vdso`)},
	{false, "Go runtime and the rest of tgtd", regexp.MustCompile(``)},
}

// bucketTable divides the CPU time of one I/O among the parts of its way.
func bucketTable(list []symbol, all, perIO float64) string {
	sums := make([]float64, len(buckets))
	for _, s := range list {
		for i, b := range buckets {
			if b.kernel == s.kernel && b.pattern.MatchString(s.name) {
				sums[i] += s.percent
				break
			}
		}
	}
	var t strings.Builder
	t.WriteString("| ns | CPU | where | what |\n|--:|--:|---|---|\n")
	for i, b := range buckets {
		where := "tgtd"
		if b.kernel {
			where = "kernel"
		}
		fmt.Fprintf(&t, "| %.0f | %.1f %% | %s | %s |\n", 1000*perIO*sums[i]/all, 100*sums[i]/all, where, b.name)
	}
	return t.String()
}
