# Every way of carrying write data: immediate, unsolicited, solicited, and in
# sequences smaller than the command.
node disk
carry() {
	setting disk node.session.iscsi.ImmediateData "$1"
	setting disk node.session.iscsi.InitialR2T "$2"
	setting disk node.session.iscsi.FirstBurstLength "$3"
	setting disk node.session.iscsi.MaxBurstLength "$4"
	setting disk node.conn[0].iscsi.MaxRecvDataSegmentLength "$5"
	login disk
	verified "$(disk disk 0)" --bsrange=4k-256k --size=4M
	logout disk
}
carry Yes No 65536 262144 65536
carry Yes Yes 8192 16384 4096
carry No No 65536 65536 8192
carry No Yes 4096 8192 262144
no_io_errors
