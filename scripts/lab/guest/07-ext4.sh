attach disk
file_system ext4 "$(disk disk 0)"
no_io_errors
