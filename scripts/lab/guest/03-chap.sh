# One-way CHAP: every algorithm that open-iscsi offers, wrong names, wrong
# secrets and no CHAP at all.
node chap
login_refused chap

chap chap guest guests-secret-1
for algorithm in MD5 SHA1 SHA256 SHA3-256 SHA3-256,SHA256,SHA1,MD5; do
	setting chap node.session.auth.chap_algs "$algorithm"
	login chap
	disk chap 0
	logout chap
done

chap chap guest wrong-secret-1
login_refused chap
chap chap stranger guests-secret-1
login_refused chap
must test -z "$(sessions_of chap)"
