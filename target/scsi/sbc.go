package scsi

// sbcTable holds the commands that read, write or release logical blocks
// (SBC-3).
var sbcTable = []Row{}
