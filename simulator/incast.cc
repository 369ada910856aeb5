// SPDX-License-Identifier: GPL-2.0-only
#include "incast.h"

#include <algorithm>
#include <utility>
#include <sstream>

#include "ns3/inet-socket-address.h"
#include "ns3/simulator.h"
#include "ns3/uinteger.h"

using namespace ns3;

namespace
{

constexpr uint16_t BULK_PORT = 5001, MICE_PORT = 5002;
constexpr uint16_t FIRST_ELEPHANT = 10000; /* local port of the first; the others follow */
constexpr uint32_t CHUNK = 1 << 16;
constexpr uint32_t REQUEST = 12; /* bytes, as the generators of the bench */

uint64_t Clock()
{
	return Simulator::Now().GetNanoSeconds();
}

void Fill(Ptr<Socket> socket, uint32_t)
{
	while (socket->GetTxAvailable() >= CHUNK && socket->Send(Create<Packet>(CHUNK)) > 0)
		;
}

void Connected(Ptr<Socket> socket)
{
	Fill(socket, 0);
}

void Nothing(Ptr<Socket>)
{
}

std::string Json(const TcpCounts &counts)
{
	std::ostringstream out;

	out << "{\"data_out\":" << counts.data_out << ",\"data_in\":" << counts.data_in
	    << ",\"retransmissions\":" << counts.retransmissions
	    << ",\"timeouts\":" << counts.timeouts << "}";
	return out.str();
}

TcpCounts CountsOf(Ptr<CountedSocket> socket)
{
	return socket ? socket->counts : TcpCounts();
}

} // namespace

Incast::Incast(const Order &order, Network &network)
    : order_(order), network_(network), uniform_(CreateObject<UniformRandomVariable>()),
      gap_(CreateObject<ExponentialRandomVariable>()), elephants_(order["elephants"])
{
	gap_->SetAttribute("Mean", DoubleValue(order["gap_ns"]));
}

void Incast::Run(std::ostream &out)
{
	uint64_t warm = order_["warmup_ns"], alone = order_["alone_ns"];

	for (uint32_t sender = 0; sender < order_.senders.size(); sender++)
		ServeMice(sender);
	StartElephants();
	Simulator::Schedule(NanoSeconds(warm), &Incast::Mark, this, "warm");
	Simulator::Schedule(NanoSeconds(warm + alone), [this] {
		Mark("begin");
		NextRound();
	});
	Simulator::Run();
	out << "{\"marks\":[";
	for (size_t i = 0; i < marks_.size(); i++)
		out << (i ? "," : "") << marks_[i];
	out << "],\"rounds\":[";
	for (size_t round = 0; round < rounds_.size(); round++) {
		out << (round ? ",[" : "[");
		for (size_t i = 0; i < rounds_[round].size(); i++) {
			const Mouse &mouse = *rounds_[round][i];

			out << (i ? ",{" : "{") << "\"fct_ns\":";
			if (mouse.ended_ns)
				out << mouse.ended_ns - mouse.begun_ns;
			else
				out << "null";
			out << ",\"asking\":" << Json(mouse.asking)
			    << ",\"answering\":" << Json(mouse.answering) << "}";
		}
		out << "]";
	}
	out << "],\"events\":" << Simulator::GetEventCount() << "}\n";
	Simulator::Destroy();
}

/* Elephants */

void Incast::StartElephants()
{
	Ptr<Node> receiver = network_.host(order_.receiver);
	Ptr<CountedSocket> sink = MakeSocket(receiver, order_.control);

	sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), BULK_PORT));
	sink->Listen();
	sink->SetAcceptCallback(
		MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
		[this](Ptr<Socket> socket, const Address &from) {
			/* Elephants are known by their local ports. */
			uint32_t number =
				InetSocketAddress::ConvertFrom(from).GetPort() - FIRST_ELEPHANT;

			socket->SetRecvCallback([this, number](Ptr<Socket> from) {
				while (Ptr<Packet> packet = from->Recv())
					elephants_[number].received += packet->GetSize();
			});
		});
	/* Not all at one moment, but with time to spread over the queue. */
	for (uint32_t number = 0; number < elephants_.size(); number++)
		Simulator::Schedule(NanoSeconds(uniform_->GetValue(0, order_["warmup_ns"] / 10.0)),
				    &Incast::StartElephant, this, number);
}

void Incast::StartElephant(uint32_t number)
{
	Ptr<CountedSocket> socket = MakeSocket(
		network_.host(order_.senders[number % order_.senders.size()]), order_.control);

	elephants_[number].socket = socket;
	socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), FIRST_ELEPHANT + number));
	socket->SetConnectCallback(MakeCallback(&Connected), MakeCallback(&Nothing));
	socket->SetSendCallback(MakeCallback(&Fill));
	socket->Connect(InetSocketAddress(network_.address(order_.receiver), BULK_PORT));
}

/* Mice */

void Incast::ServeMice(uint32_t sender)
{
	Ptr<CountedSocket> listener =
		MakeSocket(network_.host(order_.senders[sender]), order_.control);

	listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), MICE_PORT));
	listener->Listen();
	listener->SetAcceptCallback(
		MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
		[this, sender](Ptr<Socket> accepted, const Address &from) {
			Mouse &mouse = *waiting_.at(
				{sender, InetSocketAddress::ConvertFrom(from).GetPort()});

			mouse.server = DynamicCast<CountedSocket>(accepted);
			accepted->SetRecvCallback([this, &mouse](Ptr<Socket> socket) {
				while (Ptr<Packet> packet = socket->Recv())
					mouse.asked += packet->GetSize();
				if (mouse.asked == REQUEST) {
					mouse.asked++; /* answered */
					socket->Send(Create<Packet>(order_["mouse_bytes"]));
				}
			});
			accepted->SetCloseCallbacks([](Ptr<Socket> socket) { socket->Close(); },
						    MakeCallback(&Nothing));
		});
}

void Incast::NextRound()
{
	if (rounds_.size() < order_["rounds"]) {
		BeginRound();
		return;
	}
	Mark("end");
	Simulator::Schedule(NanoSeconds(order_["after_ns"]), [this] {
		Mark("after");
		Simulator::Stop();
	});
}

void Incast::BeginRound()
{
	std::vector<uint32_t> senders;
	double at = 0;

	round_began_ns_ = Clock();
	rounds_.emplace_back();
	for (uint32_t copy = 0; copy < order_["mice_per_sender"]; copy++)
		for (uint32_t sender = 0; sender < order_.senders.size(); sender++)
			senders.push_back(sender);
	for (size_t i = senders.size(); i > 1; i--)
		std::swap(senders[i - 1], senders[uniform_->GetInteger(0, i - 1)]);
	for (uint32_t sender : senders) {
		rounds_.back().push_back(std::make_unique<Mouse>());
		Mouse &mouse = *rounds_.back().back();

		mouse.sender = sender;
		mouse.round = rounds_.size();
		Simulator::Schedule(NanoSeconds(at), [this, &mouse] { OpenMouse(mouse); });
		at += gap_->GetValue();
	}
	if (senders.empty()) {
		EndRound();
		return;
	}
	running_ = senders.size();
	round_ends_ = Simulator::Schedule(NanoSeconds(order_["round_timeout_ns"]),
					  &Incast::EndRound, this);
}

void Incast::OpenMouse(Mouse &mouse)
{
	Ptr<CountedSocket> socket = MakeSocket(network_.host(order_.receiver), order_.control);
	Address name;

	mouse.client = socket;
	mouse.begun_ns = Clock();
	mouse.open = true;
	/* Linux acknowledges the first segments of a connection at once. */
	socket->SetAttribute("DelAckCount", UintegerValue(1));
	socket->SetRecvCallback([this, &mouse](Ptr<Socket> from) { MouseData(mouse, from); });
	socket->SetConnectCallback(
		[](Ptr<Socket> opened) { opened->Send(Create<Packet>(REQUEST)); },
		MakeCallback(&Nothing));
	socket->Bind();
	socket->GetSockName(name);
	waiting_[{mouse.sender, InetSocketAddress::ConvertFrom(name).GetPort()}] = &mouse;
	socket->Connect(
		InetSocketAddress(network_.address(order_.senders[mouse.sender]), MICE_PORT));
}

void Incast::MouseData(Mouse &mouse, Ptr<Socket> socket)
{
	while (Ptr<Packet> packet = socket->Recv())
		mouse.received += packet->GetSize();
	if (mouse.received == order_["mouse_bytes"] && !mouse.ended_ns) {
		mouse.ended_ns = Clock();
		socket->Close();
		/* One of an earlier round may be late. */
		if (mouse.round == rounds_.size() && --running_ == 0 && round_ends_.IsPending()) {
			round_ends_.Cancel();
			EndRound();
		}
	}
}

/* The next round begins whole intervals after this one. */
void Incast::EndRound()
{
	uint64_t interval = order_["round_interval_ns"], spent = Clock() - round_began_ns_;
	uint64_t wait = std::max<uint64_t>(1, (spent + interval - 1) / interval) * interval - spent;

	Simulator::Schedule(NanoSeconds(wait), [this] {
		for (auto &mouse : rounds_.back()) {
			mouse->asking = CountsOf(mouse->client);
			mouse->answering = CountsOf(mouse->server);
			mouse->open = false;
			mouse->client = mouse->server = nullptr;
		}
		NextRound();
	});
}

/* Figures */

TcpCounts Incast::SenderCounts() const
{
	TcpCounts sum;

	for (const auto &elephant : elephants_)
		sum += CountsOf(elephant.socket);
	for (const auto &round : rounds_)
		for (const auto &mouse : round)
			sum += mouse->open ? CountsOf(mouse->server) : mouse->answering;
	return sum;
}

void Incast::Mark(const char *name)
{
	QueueCounts queue = network_.Counts(order_.measured_at, order_.measured_towards);
	std::ostringstream out;
	const char *comma = "";

	out << "{\"name\":\"" << name << "\",\"clock_ns\":" << Clock() << ",\"elephants\":[";
	for (const auto &elephant : elephants_) {
		out << comma << "{\"received\":" << elephant.received
		    << ",\"counts\":" << Json(CountsOf(elephant.socket)) << "}";
		comma = ",";
	}
	out << "],\"senders\":" << Json(SenderCounts())
	    << ",\"queue\":{\"byte_ns\":" << queue.byte_ns << ",\"packets\":" << queue.packets
	    << ",\"drops\":" << queue.drops << ",\"acks\":" << queue.program.acks
	    << ",\"lowered\":" << queue.program.lowered
	    << ",\"handshakes\":" << queue.program.handshakes
	    << ",\"judged\":" << queue.program.judged << ",\"dropped\":" << queue.program.dropped
	    << ",\"marked\":" << queue.program.marked << ",\"depth_ns\":[";
	comma = "";
	for (const auto &[depth, ns] : queue.depth_ns) {
		out << comma << "[" << depth << "," << ns << "]";
		comma = ",";
	}
	out << "]}}";
	marks_.push_back(out.str());
}
