/* At the loopback device: the control link is cut. FROM: TCP ports whose packets are dropped, TO likewise. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#ifndef FROM
#define FROM 0
#endif
#ifndef TO
#define TO 0
#endif

SEC("tc")
int cut(struct __sk_buff *skb)
{
	__u16 ports[2] = {};
	__u8 protocol = 0;

	bpf_skb_load_bytes(skb, 23, &protocol, 1);
	if (protocol != 6 || bpf_skb_load_bytes(skb, 34, ports, sizeof(ports)))
		return TC_ACT_UNSPEC;
	if ((FROM && ports[0] == bpf_htons(FROM)) || (TO && ports[1] == bpf_htons(TO)))
		return TC_ACT_SHOT;
	return TC_ACT_UNSPEC;
}
char LICENSE[] SEC("license") = "GPL";
