# Turns the verbose output of iscsi-test-cu into one line per test:
#     Suite.Test pass|fail|skip|unfinished TEXT
# where TEXT is the first reason that was printed. A test that skips a part and
# fails another has failed; so has one after which the suite cannot clean up,
# which the suite prints as "passed [FAILED] ...".

function finish(status) {
	if (test == "") return
	if (status == "pass" && skipped) status = "skip"
	print suite "." test, status, reason
	test = ""
}

function remember(text) {
	sub(/^[^[]*\[[A-Z]+\] */, "", text)
	if (reason == "") reason = text
}

/^Suite: / { finish("unfinished"); suite = $2; next }

/^  Test: / {
	finish("unfinished")
	test = $2; reason = ""; skipped = 0
}

# What follows "passed" on its line is the suite cleaning up after the test: it
# reads reservation keys, and takes a unit attention that nobody has fetched for
# a failure, which says nothing of the test.
/(^|\.\.\.)passed *\[FAILED\] PRIN command: .*UNIT_ATTENTION/ { finish("pass"); next }
/(^|\.\.\.)passed *\[FAILED\]/ { remember($0); finish("fail"); next }
/(^|\.\.\.)passed/              { finish("pass"); next }
/(^|\.\.\.)FAILED/              { finish("fail"); next }

/\[SKIPPED\]/ { skipped = 1; remember($0) }
/\[FAILED\]/  { remember($0) }

END { finish("unfinished") }
