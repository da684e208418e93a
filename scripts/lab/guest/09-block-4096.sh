# A LUN of 4096-byte blocks with a file system on it.
attach several
file_system xfs "$(disk several 1)"
verified "$(disk several 1)" --bs=4k --size=2M --offset=64M
no_io_errors
