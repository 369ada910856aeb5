/* SPDX-License-Identifier: GPL-2.0-only */
/* The network of an order: hosts, switches, links, and the paths between them. */
#ifndef SIMULATOR_NETWORK_H
#define SIMULATOR_NETWORK_H

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ns3/ipv4-address.h"
#include "ns3/node.h"

#include "order.h"
#include "switch.h"

class Network
{
      public:
	/* Raises std::invalid_argument. */
	explicit Network(const Order &order);

	ns3::Ptr<ns3::Node> host(const std::string &name) const;
	ns3::Ipv4Address address(const std::string &name) const;
	/* Of the port of a switch towards another node. */
	QueueCounts Counts(const std::string &at, const std::string &towards);

      private:
	void Connect(const Link &link, uint64_t delay);
	ns3::Ptr<ns3::Node> Host(const std::string &name);
	void AddRoutes();
	uint32_t port(const std::string &at, const std::string &towards) const;

	std::map<std::string, std::unique_ptr<Switch>> switches_;
	std::map<std::string, ns3::Ptr<ns3::Node>> hosts_;
	std::map<std::string, ns3::Ipv4Address> addresses_;
	std::map<std::string, std::map<std::string, uint32_t>>
		ports_; /* of switches, by neighbour */
};

#endif
