# Makes docs/internals/conformance-iser.md of the reasons for what does not pass, the scenario's
# log, the names of all tests in order, and results (see results.awk):
#     awk -v suite=NAME -f iser.awk expected-iser.txt iser.log iser.tests iser.found

FILENAME ~ /expected-iser/ {
	if ($0 ~ /^#/ || NF == 0) next
	test = $1; want[test] = $2; sub(/^[^ ]+ +[^ ]+ +/, ""); why[test] = $0
	next
}

FILENAME ~ /iser\.log$/ {
	if ($1 != "asked" || $3 != "attempt") next
	test = $2; sub(/:$/, "", test)
	attempts[test] = $4 + 0; status = $6 + 0
	if (status >= 128) crashes[test]++
	next
}

FILENAME ~ /iser\.tests$/ { tests[++last] = $1; next }

{ found[$1] = $2; text[$1] = $0; sub(/^[^ ]+ [^ ]+ ?/, "", text[$1]) }

# key is the line of the reasons that is about a test.
function key(test,   all) { all = test; sub(/\..*/, ".*", all); return (test in want) ? test : all }

END {
	for (i = 1; i <= last; i++) {
		test = tests[i]; s = test; sub(/\..*/, "", s)
		if (!(s in of)) order[++suites] = s
		of[s]++
		result = (test in found) ? found[test] : "not run"
		count[result]++
		if (crashes[test]) crashed = crashed (crashed == "" ? "" : ", ") test
		if (result == "pass") { passed[s]++; if (key(test) in want) also[++better] = test; continue }
		k = key(test)
		if (result == "not run" && !((k in want) && want[k] == "absent")) { missing = missing " " test; continue }
		rest[++others] = "| " test " | " result " | " ((k in why) ? why[k] : "**unexplained**") " | " text[test] " |"
	}
	print "# Conformance over iSER\n"
	print "What " suite "'s `iscsi-test-cu -d` finds over `iser://`, in the lab's guest with Soft-RoCE, on a volume of 64 MiB, each test in a process of its own. This page is written by `scripts/conformance/iser.sh`; the reasons are those of `scripts/conformance/expected-iser.txt`. Over TCP the same tests are in [conformance.md](conformance.md); [iser.md](../iser.md) tells what is known of libiscsi's iSER. Some of the tests are part of the lab (`iser-conformance`).\n"
	printf "%d tests: %d passed, %d skipped, %d failed, %d not finished, %d not run.", last, count["pass"], count["skip"], count["fail"], count["unfinished"], count["not run"]
	print crashed == "" ? " The client never crashed.\n" : " The client crashed in " crashed ".\n"
	if (better) {
		printf "These pass although a reason is given for why they do not:"
		for (i = 1; i <= better; i++) printf " %s", also[i]
		print "\n"
	}
	if (missing) print "Not run:" missing ".\n"
	print "| suite | passes |\n|---|---|"
	for (i = 1; i <= suites; i++) printf "| %s | %d of %d |\n", order[i], passed[order[i]], of[order[i]]
	print "\n## What does not pass\n\n| test | result | why | what the suite says first |\n|---|---|---|---|"
	for (i = 1; i <= others; i++) print rest[i]
}
