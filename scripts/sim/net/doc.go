// Package net simulates networks whose switches mark packets, and what governs how much
// connections send: the windows of scheduler/qtcp and the rates of scheduler/qrdma, with
// DCTCP, D2TCP and DCQCN as baselines.
//
// There are two models. The discrete-time model of the thesis (slots.go) counts in round
// trips. The other one (link.go, flow.go) has every packet, on links with queues, and is
// what the end-to-end simulator is made of.
package net
