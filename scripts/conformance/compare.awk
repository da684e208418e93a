# Compares results with what is expected of them:
#     awk -f compare.awk EXPECTED RESULTS
# EXPECTED has lines "Suite.Test fail|skip|wrong REASON" or, for all tests of a
# suite, "Suite.* ...". What is wrong fails because the test itself is: REASON says
# what it does. Whatever it does not name has to pass. Prints every difference, then
# a summary, and ends with status 1 if there is one.

function complain(text) { print "  " text; differences++ }

FILENAME == ARGV[1] {
	if ($0 ~ /^#/ || NF == 0) next
	if (NF < 3 || ($2 != "fail" && $2 != "skip" && $2 != "wrong")) { complain("bad line " FNR " of the list: " $0); next }
	if ($1 in expected) complain("twice in the list: " $1)
	expected[$1] = $2 == "wrong" ? "fail" : $2
	next
}

{
	all = $1; sub(/\..*/, ".*", all)
	key = ($1 in expected) ? $1 : all
	want = (key in expected) ? expected[key] : "pass"
	used[key] = 1
	count[$2]++
	total++
	if ($2 == want) next
	text = $0; sub(/^[^ ]+ [^ ]+ ?/, "", text)
	complain($1 ": found " $2 ", expected " want (text == "" ? "" : ": " text))
}

END {
	for (key in expected)
		if (!(key in used)) complain("in the list, but no such test ran: " key)
	printf "%d tests, %d passed, %d failed, %d skipped, %d unfinished; %d differ from what is expected\n",
		total, count["pass"], count["fail"], count["skip"], count["unfinished"], differences
	exit differences > 0 || total == 0
}
