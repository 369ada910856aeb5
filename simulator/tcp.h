/* SPDX-License-Identifier: GPL-2.0-only */
/* The TCP of hosts: that of ns-3, with the timers of Linux, and counted. */
#ifndef SIMULATOR_TCP_H
#define SIMULATOR_TCP_H

#include <cstdint>
#include <string>

#include "ns3/node.h"
#include "ns3/socket.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-base.h"

/* Segments with data, and what was sent again. */
struct TcpCounts {
	uint64_t data_out = 0;
	uint64_t data_in = 0;
	uint64_t retransmissions = 0;
	uint64_t timeouts = 0; /* of retransmission timers, handshakes included */

	TcpCounts &operator+=(const TcpCounts &other);
};

class CountedSocket : public ns3::TcpSocketBase
{
      public:
	static ns3::TypeId GetTypeId();

	TcpCounts counts;

	void Watch();

      protected:
	ns3::Ptr<ns3::TcpSocketBase> Fork() override;
	void ReTxTimeout() override;

      private:
	void OnSent(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader &header,
		    ns3::Ptr<const ns3::TcpSocketBase> socket);
	void OnReceived(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader &header,
			ns3::Ptr<const ns3::TcpSocketBase> socket);

	bool sent_any_ = false;
	ns3::SequenceNumber32 next_; /* behind the last that it has sent */
};

/* Times in ns, sizes in bytes. */
struct TcpSettings {
	std::string control = "cubic"; /* cubic, reno or dctcp */
	uint64_t rto_min = 200'000'000;
	uint32_t buffer = 6 << 20; /* of sender and receiver, each */
	uint32_t ack_every = 2;    /* segments; a single one is acknowledged after 40 ms */
	bool sack = true;
	bool timestamps = true;
};

/* Before any socket is made. Raises std::invalid_argument for a control that is not known. */
void Configure(const TcpSettings &settings);
ns3::Ptr<CountedSocket> MakeSocket(ns3::Ptr<ns3::Node> node, const std::string &control);

#endif
