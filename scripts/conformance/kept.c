// Loaded before the C library (LD_PRELOAD) into libiscsi's suite over iSER, whose
// version 1.19 goes on reading and writing what it has given back: nothing is given
// back. A process runs one test, and takes little more than it would otherwise.
void free(void *block) { (void)block; }
