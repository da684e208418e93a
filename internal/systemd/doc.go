// Package systemd is what a server tells the service manager that has started it
// (sd_notify(3)), and what that keeps for the next process of the service: open
// descriptors, by name.
package systemd
