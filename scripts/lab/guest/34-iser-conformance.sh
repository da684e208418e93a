# machines: rdma
# seconds: 240
# Some tests of libiscsi's conformance suite over iSER, of all kinds of commands, which
# pass with its version 1.19: all of them are in docs/internals/conformance-iser.md.
. /lab/iser.bash
. /lab/suite.bash
readonly TESTS='CompareAndWrite.Unwritten ExtendedCopy.ValidSegDescr Inquiry.Standard Mandatory.MandatorySBC
	ModeSense6.AllPages OrWrite.DpoFua PrinReadKeys.Truncate ProutReserve.AccessEARO ProutPreempt.RemoveRegistration
	Read10.ReadProtect ReadCapacity16.Simple Reserve6.2Initiators ReceiveCopyResults.OpParams Unmap.ZeroBlocks
	WriteAtomic16.ZeroBlocks WriteSame16.InvalidDataOutSize WriteVerify16.Flags'

suite_up
for test in $TESTS; do
	examine "$test"
	grep -qE '(^|\.\.\.)passed' $SAID && ! grep -qE '\[(FAILED|SKIPPED)\]' $SAID || { cat $SAID; fail "$test does not pass"; }
done
suite_down
