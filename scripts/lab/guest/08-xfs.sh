attach disk
file_system xfs "$(disk disk 0)"
no_io_errors
