# A LUN of 4096-byte blocks with a file system on it.
attach disk
file_system xfs "$(disk disk 1)"
verified "$(disk disk 1)" --bs=4k --size=4M --offset=64M
no_io_errors
