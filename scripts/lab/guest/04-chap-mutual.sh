# Mutual CHAP: the target proves itself too, or the initiator leaves.
node mutual
chap mutual guest guests-secret-1 target targets-secret-1
login mutual
disk mutual 0
logout mutual

chap mutual guest guests-secret-1 target not-its-secret-1
login_refused mutual
chap mutual guest wrong-secret-1 target targets-secret-1
login_refused mutual
must test -z "$(sessions_of mutual)"
