# The portal at [::1], which the guest reaches as fec0::2.
portal="[fec0::2]:$PORT"
node disk "$portal"
login disk -p "$portal"
verified "$(disk disk 0)" --bs=64k --size=4M
logout disk -p "$portal"
