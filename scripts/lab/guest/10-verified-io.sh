# Checked I/O in small, large and mixed blocks, on a file and in RAM.
attach disk
attach several
verified_sizes "$(disk disk 0)"
verified_sizes "$(disk several 2)"
verified "$(disk disk 0)" --bs=1M --size=16M --offset=64M
no_io_errors
