// SPDX-License-Identifier: GPL-2.0-only
#include "order.h"

#include <sstream>
#include <stdexcept>

namespace
{

std::string FromHex(const std::string &text)
{
	std::string bytes;

	for (size_t i = 0; i + 1 < text.size(); i += 2)
		bytes.push_back(std::stoi(text.substr(i, 2), nullptr, 16));
	return bytes;
}

Law ReadLaw(std::istream &words)
{
	Law law;
	std::string hex;

	words >> law.at >> law.towards >> hex;
	law.bytes = FromHex(hex);
	return law;
}

} // namespace

uint64_t Order::operator[](const std::string &name) const
{
	auto found = numbers.find(name);

	if (found == numbers.end())
		throw std::invalid_argument("no setting " + name);
	return found->second;
}

Order ReadOrder(std::istream &text)
{
	Order order;

	for (std::string line; std::getline(text, line);) {
		std::istringstream words(line);
		std::string what, name;

		if (!(words >> what))
			continue;
		if (what == "switch") {
			words >> name;
			order.switches.push_back(name);
		} else if (what == "link") {
			Link link;

			words >> link.one >> link.other >> link.rate >> link.buffer;
			order.links.push_back(link);
		} else if (what == "law") {
			order.laws.push_back(ReadLaw(words));
		} else if (what == "queue_law") {
			order.queue_laws.push_back(ReadLaw(words));
		} else if (what == "receiver") {
			words >> order.receiver;
		} else if (what == "control") {
			words >> order.control;
		} else if (what == "bottleneck") {
			words >> order.measured_at >> order.measured_towards;
		} else if (what == "senders") {
			while (words >> name)
				order.senders.push_back(name);
			words.clear();
		} else {
			words >> order.numbers[what];
		}
		if (words.fail())
			throw std::invalid_argument("this line of the order is wrong: " + line);
	}
	return order;
}
