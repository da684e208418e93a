# Makes docs/conformance-iser.md of results (see results.awk):
#     awk -v suite=NAME -f iser.awk iser.results

{
	split($1, part, "."); s = part[1]
	count[$2]++
	if (!(s in of)) order[++suites] = s
	of[s]++
	if ($2 == "pass") { passed[s]++; next }
	text = $0; sub(/^[^ ]+ [^ ]+ ?/, "", text)
	rest[++others] = "| " $1 " | " $2 " | " text " |"
}

END {
	print "# Conformance over iSER\n"
	print "What " suite "'s `iscsi-test-cu -d` finds over `iser://`, in the lab's guest with Soft-RoCE, on a file of 64 MiB. This page is written by `scripts/conformance/iser.sh`. Over TCP the same tests are in [conformance.md](conformance.md); [iser.md](iser.md) tells what is known of libiscsi's iSER: it crashes now and then, with other targets as well, so that some tests have no end, and applies no residuals, of which some tests complain.\n"
	printf "%d tests of the suites below: %d passed, %d skipped, %d failed, %d not finished, because the client crashed or the time for them, under emulation, was over. Tests that are missing are those before which it crashed, and suites that were not asked for.\n\n", NR, count["pass"], count["skip"], count["fail"], count["unfinished"]
	print "| suite | passes |\n|---|---|"
	for (i = 1; i <= suites; i++) printf "| %s | %d of %d |\n", order[i], passed[order[i]], of[order[i]]
	print "\n## What does not pass\n\n| test | result | what the suite says first |\n|---|---|---|"
	for (i = 1; i <= others; i++) print rest[i]
}
