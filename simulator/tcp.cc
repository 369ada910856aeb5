// SPDX-License-Identifier: GPL-2.0-only
#include "tcp.h"

#include <stdexcept>

#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/nstime.h"
#include "ns3/rtt-estimator.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-cubic.h"
#include "ns3/tcp-dctcp.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/tcp-linux-reno.h"
#include "ns3/tcp-prr-recovery.h"
#include "ns3/uinteger.h"

using namespace ns3;

namespace
{

constexpr uint32_t MSS = 1460, TIMESTAMPS = 12;

Ptr<TcpCongestionOps> MakeControl(const std::string &name)
{
	if (name == "cubic")
		return CreateObject<TcpCubic>();
	if (name == "reno")
		return CreateObject<TcpLinuxReno>();
	if (name == "dctcp")
		return CreateObject<TcpDctcp>();
	throw std::invalid_argument("no congestion control " + name);
}

} // namespace

NS_OBJECT_ENSURE_REGISTERED(CountedSocket);

TcpCounts &TcpCounts::operator+=(const TcpCounts &other)
{
	data_out += other.data_out;
	data_in += other.data_in;
	retransmissions += other.retransmissions;
	timeouts += other.timeouts;
	return *this;
}

TypeId CountedSocket::GetTypeId()
{
	static TypeId id =
		TypeId("CountedSocket").SetParent<TcpSocketBase>().AddConstructor<CountedSocket>();

	return id;
}

void CountedSocket::Watch()
{
	counts = {};
	TraceConnectWithoutContext("Tx", MakeCallback(&CountedSocket::OnSent, this));
	TraceConnectWithoutContext("Rx", MakeCallback(&CountedSocket::OnReceived, this));
}

Ptr<TcpSocketBase> CountedSocket::Fork()
{
	Ptr<CountedSocket> made = CopyObject<CountedSocket>(Ptr<CountedSocket>(this));

	/* The copy has the callbacks of the listener, too. */
	made->TraceDisconnectWithoutContext("Tx", MakeCallback(&CountedSocket::OnSent, this));
	made->TraceDisconnectWithoutContext("Rx", MakeCallback(&CountedSocket::OnReceived, this));
	made->Watch();
	return made;
}

void CountedSocket::ReTxTimeout()
{
	counts.timeouts++;
	TcpSocketBase::ReTxTimeout();
}

void CountedSocket::OnSent(Ptr<const Packet> packet, const TcpHeader &header,
			   Ptr<const TcpSocketBase>)
{
	bool opens = header.GetFlags() & TcpHeader::SYN, ends = header.GetFlags() & TcpHeader::FIN;
	uint32_t taken = packet->GetSize() + opens + ends;

	counts.data_out += packet->GetSize() > 0;
	if (!taken)
		return;
	if (sent_any_ && header.GetSequenceNumber() < next_) {
		counts.retransmissions++;
		/* No timer of ns-3 has a function of its own for these. */
		counts.timeouts += !packet->GetSize();
	} else {
		next_ = header.GetSequenceNumber() + taken;
	}
	sent_any_ = true;
}

void CountedSocket::OnReceived(Ptr<const Packet> packet, const TcpHeader &,
			       Ptr<const TcpSocketBase>)
{
	counts.data_in += packet->GetSize() > 0;
}

void Configure(const TcpSettings &settings)
{
	MakeControl(settings.control);
	/* As Linux. A connection that has ended is forgotten soon: its ports are not used again. */
	Config::SetDefault("ns3::TcpSocket::SegmentSize",
			   UintegerValue(MSS - (settings.timestamps ? TIMESTAMPS : 0)));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
	Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
	Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15));
	Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
	Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(settings.ack_every));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(settings.buffer));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(settings.buffer));
	Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(NanoSeconds(settings.rto_min)));
	/* Linux adds no less than this to the round trip, as ns-3 adds no less than its granularity. */
	Config::SetDefault("ns3::TcpSocketBase::ClockGranularity",
			   TimeValue(NanoSeconds(settings.rto_min)));
	Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(0.05));
	Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(settings.sack));
	Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(settings.timestamps));
}

Ptr<CountedSocket> MakeSocket(Ptr<Node> node, const std::string &control)
{
	Ptr<TcpL4Protocol> tcp = node->GetObject<TcpL4Protocol>();
	Ptr<CountedSocket> socket = CreateObject<CountedSocket>();

	socket->SetNode(node);
	socket->SetTcp(tcp);
	socket->SetRtt(CreateObject<RttMeanDeviation>());
	socket->SetCongestionControlAlgorithm(MakeControl(control));
	socket->SetRecoveryAlgorithm(CreateObject<TcpPrrRecovery>());
	tcp->AddSocket(socket);
	socket->Watch();
	return socket;
}
