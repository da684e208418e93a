# Makes docs/internals/conformance.md of the lists of what is expected and of results (see
# results.awk):
#     awk -v peer=NAME -v suite=NAME -f table.awk expected-NAME.txt... tgt.results NAME.results...
# A suite that is listed in several families counts once for each run in the first
# table; below, a test is the same in all families.

function base(path) { sub(/.*\//, "", path); sub(/\.results$/, "", path); return path }

BEGIN {
	columns = split("file file4k ram cached back removable encrypted protected sanitize", column, " ")
	title["file"] = "file"
	title["file4k"] = "file, blocks of 4096 bytes"
	title["ram"] = "memory"
	title["cached"] = "file behind the block cache, `write: through`"
	title["back"] = "file behind the block cache, `write: back`"
	title["removable"] = "removable medium in memory, physical blocks of 512 bytes"
	title["encrypted"] = "encrypted file"
	title["protected"] = "write protected medium (suite ReadOnly)"
	title["sanitize"] = "encrypted file that is overwritten slowly (suite Sanitize, with `-S`)"
}

FILENAME ~ /expected-.*\.txt$/ {
	if ($0 ~ /^#/ || NF < 3) next
	name = FILENAME
	sub(/.*expected-/, "", name); sub(/\.txt$/, "", name)
	why = $0
	sub(/^[^ ]+ +[^ ]+ +/, "", why)
	reason[$1] = why
	if ($2 == "wrong") wrong[name, $1] = why
	next
}

{
	name = base(FILENAME); split($1, part, "."); s = part[1]
	result = (name, $1) in wrong && $2 == "fail" ? "wrong" : $2
	count[name, result]++; total[name]++
	if (!(s in seen)) { seen[s] = 1; order[++suites] = s }
	if (!((name, $1) in once)) {
		once[name, $1] = result
		of[name, s]++
	}
	if (name == "tgt") { if (once[name, $1] != result) once[name, $1] = "fail"; next }
	if (!($1 in known)) { known[$1] = 1; tests[++distinct] = $1; inSuite[s]++ }
	if (result == "pass") passes[$1] = 1
	else if (result == "fail" || result == "unfinished") fails[$1] = 1
}

function passed(name, s,   i, n) {
	if (!((name, s) in of)) return "-"
	n = 0
	for (i = 1; i <= distinct; i++) if (index(tests[i], s ".") == 1 && once[name, tests[i]] == "pass") n++
	return n
}

function line(name, what) {
	printf "| %s | %d | %d | %d | %d | %d |\n", what, total[name], count[name, "pass"], count[name, "skip"],
		count[name, "wrong"], count[name, "fail"] + count[name, "unfinished"]
}

function union(s,   i, n) {
	n = 0
	for (i = 1; i <= distinct; i++) if (index(tests[i], s ".") == 1 && (tests[i] in passes) && !(tests[i] in fails)) n++
	return n
}

# reasonOf looks for the test, then for its suite.
function reasonOf(test,   all) {
	if (test in reason) return reason[test]
	all = test
	sub(/\..*/, ".*", all)
	return reason[all]
}

END {
	print "# Conformance\n"
	print "What " suite "'s `iscsi-test-cu -d` finds, with a second path to the logical unit. This page is written by `scripts/conformance/table.sh` from runs of `scripts/conformance/run.sh` and of the same suite against " peer " with a file as its backing store. The lists `scripts/conformance/expected-*.txt` give the reason for each test that a volume does not pass; a run fails that differs from them. [conformance-iser.md](conformance-iser.md) is about iSER.\n"
	print "A test that skips a part of itself counts as skipped. The suite lists most tests in more than one of its families: the volume `file` and the peer ran all of them, the other volumes the one that has every test. \"Wrong\" are tests that fail on that volume because of what they do themselves.\n"
	print "| run | tests | passed | skipped | wrong | failed |\n|---|---|---|---|---|---|"
	for (c = 1; c <= columns; c++) line(column[c], "`" column[c] "`: " title[column[c]])
	line("tgt", peer)

	for (i = 1; i <= distinct; i++) if ((tests[i] in passes) && !(tests[i] in fails)) all++
	print "\n## By suite\n"
	printf "Of %d different tests %d pass on at least one volume and fail on none", distinct, all
	print " (but where they are wrong). No volume can pass all: a medium is removable or not, and has several logical blocks in a physical one or not. Each column says how many of the suite's tests the volume passes.\n"
	printf "| suite | tests | pass |"
	for (c = 1; c <= columns; c++) printf " %s |", column[c]
	printf " %s |\n|---|---|---|", peer
	for (c = 0; c <= columns; c++) printf "---|"
	print ""
	for (i = 1; i <= suites; i++) {
		s = order[i]
		printf "| %s | %d | %s |", s, inSuite[s], union(s) == inSuite[s] ? "all" : union(s)
		for (c = 1; c <= columns; c++) printf " %s |", passed(column[c], s)
		printf " %s |\n", passed("tgt", s)
	}

	print "\n## What no volume passes\n"
	for (i = 1; i <= distinct; i++) {
		if ((tests[i] in passes) && !(tests[i] in fails)) continue
		print "- " tests[i] ": " reasonOf(tests[i])
		none++
	}
	if (!none) print "Nothing."

	print "\n## Tests that are wrong\n"
	for (i = 1; i <= distinct; i++) {
		where = ""
		for (c = 1; c <= columns; c++) if ((column[c], tests[i]) in wrong) { where = where (where == "" ? "" : ", ") column[c]; why = wrong[column[c], tests[i]] }
		if (where != "") print "- " tests[i] " (" where "): " why
	}
}
