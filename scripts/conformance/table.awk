# Makes docs/conformance.md of results (see results.awk):
#     awk -v peer=NAME -v suite=NAME -f table.awk tgt.results NAME.results...
# The suite lists most tests in several families; each run of one counts. Of
# the tests that need a certain medium the volume that has it is the one that
# counts: "special" names it.

function base(path) { sub(/.*\//, "", path); sub(/\.results$/, "", path); return path }

BEGIN {
	special["PreventAllow"] = special["NoMedia"] = special["StartStopUnit"] = "removable"
	special["ReadOnly"] = "protected"
	special["Sanitize"] = "sanitize"
}

{
	name = base(FILENAME); split($1, part, "."); s = part[1]
	count[name, $2]++; total[name]++
	if (!(s in seen)) { seen[s] = 1; order[++suites] = s }
	of[name, s]++
	if ($2 == "pass") passed[name, s]++
	volumes[name] = 1
}

function cell(name, s) { return ((name, s) in of) ? (passed[name, s] + 0) " of " of[name, s] : "-" }

function line(name, what) {
	printf "| %s | %d | %d | %d | %d |\n", what, total[name], count[name, "pass"], count[name, "skip"], count[name, "fail"] + count[name, "unfinished"]
}

END {
	print "# Conformance\n"
	print "What " suite "'s `iscsi-test-cu -d` finds, with a second path to the logical unit. This page is written by `scripts/conformance/table.sh` from runs of `scripts/conformance/run.sh` and of the same suite against " peer " with a file as its backing store. The lists `scripts/conformance/expected-*.txt` give the reason for each test that Lunar does not pass; a run fails that differs from them.\n"
	print "A test that skips a part of itself counts as skipped. The suite lists most tests in more than one of its families; each run of one counts.\n"
	print "| run | tests | passed | skipped | failed |\n|---|---|---|---|---|"
	line("file", "Lunar, file")
	line("file4k", "Lunar, file, blocks of 4096 bytes")
	line("ram", "Lunar, memory")
	line("cached", "Lunar, file behind the block cache, `write: through`")
	line("back", "Lunar, file behind the block cache, `write: back`")
	line("removable", "Lunar, removable medium, physical blocks of 512 bytes")
	line("protected", "Lunar, write protected medium (suite ReadOnly)")
	line("sanitize", "Lunar, overwritten slowly (suite Sanitize, with `-S`)")
	line("tgt", peer)
	print "\n## By suite\n"
	print "The volume is `file`, or the one with the medium that the suite is about.\n"
	print "| suite | volume | Lunar passes | " peer " passes |\n|---|---|---|---|"
	for (i = 1; i <= suites; i++) {
		s = order[i]; v = (s in special) ? special[s] : "file"
		printf "| %s | %s | %s | %s |\n", s, v, cell(v, s), cell("tgt", s)
	}
}
