/* SPDX-License-Identifier: GPL-2.0-only */
/* The traffic of an incast: elephants, and volleys of mice that the receiver asks for. */
#ifndef SIMULATOR_INCAST_H
#define SIMULATOR_INCAST_H

#include <memory>
#include <ostream>
#include <vector>

#include "ns3/event-id.h"
#include "ns3/random-variable-stream.h"

#include "network.h"
#include "order.h"
#include "tcp.h"

struct Elephant {
	ns3::Ptr<CountedSocket> socket;
	uint64_t received = 0;
};

struct Mouse {
	ns3::Ptr<CountedSocket> client, server;
	uint64_t begun_ns = 0, ended_ns = 0; /* 0: it has not */
	uint32_t sender = 0, round = 0;
	uint32_t received = 0, asked = 0;
	TcpCounts asking, answering;
	bool open = false; /* counts are those of the sockets still */
};

class Incast
{
      public:
	Incast(const Order &order, Network &network);

	/* All phases, and the figures of each as JSON. */
	void Run(std::ostream &out);

      private:
	void StartElephants();
	void StartElephant(uint32_t number);
	void ServeMice(uint32_t sender);
	void BeginRound();
	void OpenMouse(Mouse &mouse);
	void MouseData(Mouse &mouse, ns3::Ptr<ns3::Socket> socket);
	void EndRound();
	void NextRound();
	void Mark(const char *name);
	TcpCounts SenderCounts() const;

	const Order &order_;
	Network &network_;
	ns3::Ptr<ns3::UniformRandomVariable> uniform_;
	ns3::Ptr<ns3::ExponentialRandomVariable> gap_;
	std::vector<Elephant> elephants_;
	std::vector<std::vector<std::unique_ptr<Mouse>>> rounds_;
	std::map<std::pair<uint32_t, uint16_t>, Mouse *>
		waiting_; /* by sender and port of the client */
	uint64_t round_began_ns_ = 0;
	size_t running_ = 0; /* mice of this round */
	ns3::EventId round_ends_;
	std::vector<std::string> marks_;
};

#endif
