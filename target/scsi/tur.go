package scsi

// runTestUnitReady has nothing left to test: Execute has looked at attentions
// and at whether the unit is stopped.
func runTestUnitReady(c *Command) { c.Good() }
