# The job files for users, through the kernel's initiator.
attach disk
fio_jobs() { must env SIZE=4M RUNTIME=200ms ERASE=yes FIO_OPTIONS=--minimal "$@"; }
fio_jobs ENGINE=io_uring /lab/fio/run.sh "$(disk disk 0)" random-read random-write sequential-read sequential-write mixed verify
fio_jobs ENGINE=libaio /lab/fio/run.sh "$(disk disk 0)" random-read verify

# What would destroy something is refused.
refused env SIZE=4M /lab/fio/run.sh "$(disk disk 0)" verify
must mkfs.ext4 -q "$(disk disk 0)"
at=$(mktemp -d)
must mount "$(disk disk 0)" "$at"
refused env ERASE=yes SIZE=4M /lab/fio/run.sh "$(disk disk 0)" verify
must umount "$at"
no_io_errors
