# The same with header and data digests.
node disk
setting disk node.conn[0].iscsi.HeaderDigest CRC32C
setting disk node.conn[0].iscsi.DataDigest CRC32C
login disk
for digest in HeaderDigest DataDigest; do
	must grep "$digest: CRC32C" <(iscsiadm -m session -P 2)
done
verified_sizes "$(disk disk 0)"
no_io_errors
