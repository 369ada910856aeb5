/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is to be simulated, as text: a name and its values on each line. fairq_ryu/experiments/simulator/order.py writes
 * it.
 *
 *   switch NAME
 *   link NAME NAME RATE BUFFER   between a switch and another node, both ways; RATE in bit/s; BUFFER of the first
 *                                one's port in bytes, 0: as much as comes. A name that is no switch is a host
 *   law NAME NAME HEX            window law of the port of the first to the second: an fq_law
 *   queue_law NAME NAME HEX      likewise, an fq_queue_law
 *   receiver NAME
 *   bottleneck NAME NAME         the port that is measured
 *   senders NAME ...
 *   SETTING NUMBER               integers; times in ns, sizes in bytes
 *   control NAME                 congestion control of all hosts
 */
#ifndef SIMULATOR_ORDER_H
#define SIMULATOR_ORDER_H

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

struct Link {
	std::string one, other;
	uint64_t rate;
	uint32_t buffer;
};

struct Law {
	std::string at, towards, bytes;
};

struct Order {
	std::vector<std::string> switches;
	std::vector<Link> links;
	std::vector<Law> laws, queue_laws;
	std::string receiver, control, measured_at, measured_towards;
	std::vector<std::string> senders;
	std::map<std::string, uint64_t> numbers;

	/* A setting. Raises std::invalid_argument if it is missing. */
	uint64_t operator[](const std::string &name) const;
};

/* Raises std::invalid_argument. */
Order ReadOrder(std::istream &text);

#endif
