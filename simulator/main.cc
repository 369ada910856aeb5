// SPDX-License-Identifier: GPL-2.0-only
/* Reads an order (order.h) from its standard input, and writes what it has measured as one JSON object. */
#include <exception>
#include <iostream>

#include "ns3/rng-seed-manager.h"

#include "incast.h"
#include "network.h"
#include "order.h"
#include "tcp.h"

int main()
{
	try {
		Order order = ReadOrder(std::cin);

		ns3::RngSeedManager::SetSeed(1);
		ns3::RngSeedManager::SetRun(order["seed"]);
		Configure({.control = order.control,
			   .rto_min = order["rto_min_ns"],
			   .buffer = uint32_t(order["socket_buffer"]),
			   .ack_every = uint32_t(order["ack_every"]),
			   .sack = order["sack"] != 0,
			   .timestamps = order["timestamps"] != 0});
		Network network(order);
		Incast(order, network).Run(std::cout);
	} catch (const std::exception &error) {
		std::cerr << error.what() << "\n";
		return 1;
	}
	return 0;
}
