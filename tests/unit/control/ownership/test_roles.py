"""The roles at switches: what is sent, and when a switch is ours to use. The switches are agents' servers."""

from types import SimpleNamespace

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import oxm
from fairq_ryu.cluster.view import TO_AGENT, TO_BRIDGE
from fairq_ryu.control.ownership.roles import Roles

MASTER, SLAVE, NOCHANGE = ofp.OFPCR_ROLE_MASTER, ofp.OFPCR_ROLE_SLAVE, ofp.OFPCR_ROLE_NOCHANGE
UNSET = 0xFFFF_FFFF_FFFF_FFFF


class Switch:
    """A switch with the roles of OpenFlow, as connections see it."""

    def __init__(self, generation=UNSET):
        self.generation, self.master = generation, None

    def ask(self, datapath, role, generation):
        if role != NOCHANGE:
            if self.generation != UNSET and generation < self.generation:
                return SimpleNamespace(
                    datapath=datapath, type=ofp.OFPET_ROLE_REQUEST_FAILED, code=ofp.OFPRRFC_STALE
                )
            self.generation = generation
            datapath.role = role
            if self.master is datapath:
                self.master = None
            if role == MASTER:
                if self.master is not None:
                    self.master.role = SLAVE
                self.master = datapath
        return SimpleNamespace(datapath=datapath, role=datapath.role, generation_id=self.generation)


class Controller:
    """A controller whose messages are delivered at once. ``said``: the roles that it has requested."""

    def __init__(self):
        self.log, self.said, self.later = [], [], {}
        self.roles = Roles(
            lambda datapath: self.log.append(("gained", datapath.id)),
            lambda datapath, why: self.log.append(("lost", datapath.id)),
            lambda dpid, generation: self.later.update({dpid: generation}),
        )

    def connect(self, switch, number):
        datapath = SimpleNamespace(id=number, switch=switch, role=ofp.OFPCR_ROLE_EQUAL, owned=False)
        self.deliver(self.roles.connected(datapath))
        return datapath

    def decide(self, owned, known=None):
        self.deliver(self.roles.decided(owned, known or owned))

    def deliver(self, messages):
        messages = list(messages)
        while messages:
            datapath, message = messages.pop(0)
            self.said.append((message.role, message.generation_id))
            reply = datapath.switch.ask(datapath, message.role, message.generation_id)
            answer = self.roles.refused(reply) if hasattr(reply, "code") else self.roles.replied(reply)
            messages += answer

    def slave_error(self, datapath):
        error = SimpleNamespace(datapath=datapath, type=ofp.OFPET_BAD_REQUEST, code=ofp.OFPBRC_IS_SLAVE)
        return self.roles.refused(error)


def test_a_switch_is_used_when_it_has_confirmed_the_master_and_not_before():
    made, switch = Controller(), Switch()
    datapath = made.connect(switch, 1)
    assert made.said == [(SLAVE, 0)] and made.log == [] and not datapath.owned
    made.decide({1: 4})
    assert made.said[-1] == (MASTER, 4)
    assert made.log == [("gained", 1)] and datapath.owned
    made.decide({1: 4})
    assert len(made.said) == 2  # nothing new


def test_a_switch_that_connects_when_it_is_owned_already():
    made = Controller()
    made.decide({1: 4})
    made.connect(Switch(), oxm.agent_dpid(1))
    assert made.said == [(MASTER, 4)] and made.log == [("gained", oxm.agent_dpid(1))]
    assert made.roles.reach() == {1: TO_AGENT}
    made.connect(Switch(), 1)
    assert made.roles.reach() == {1: TO_AGENT | TO_BRIDGE}


def test_the_next_owner_keeps_the_last_one_out():
    switch, before, after = Switch(), Controller(), Controller()
    old, new = before.connect(switch, 1), after.connect(switch, 1)
    before.decide({1: 4})
    after.decide({1: 5})
    assert switch.master is new and old.role == SLAVE
    assert before.slave_error(old) == []
    assert before.log == [("gained", 1), ("lost", 1)] and not old.owned
    # It insists, because it has not heard of the next one.
    before.decide({1: 4})
    assert switch.master is new
    assert before.later == {1: 5} and before.log == [("gained", 1), ("lost", 1)]


def test_what_is_another_controllers_is_lost_at_once_and_the_role_given_up():
    made, switch = Controller(), Switch()
    datapath = made.connect(switch, 1)
    made.decide({1: 4})
    made.decide({}, {1: 5})
    assert made.log == [("gained", 1), ("lost", 1)] and not datapath.owned
    assert made.said[-1] == (SLAVE, 5) and switch.master is None


def test_a_later_generation_of_our_own_changes_nothing_but_the_role():
    made, switch = Controller(), Switch()
    made.connect(switch, 1)
    made.decide({1: 4})
    made.decide({1: 6})
    assert made.said[-1] == (MASTER, 6) and switch.generation == 6
    assert made.log == [("gained", 1)]


def test_a_switch_with_a_later_generation_than_the_database_says_which():
    made, switch = Controller(), Switch(generation=57)
    made.connect(switch, 1)
    # As slave, its generation is taken.
    assert made.said == [(SLAVE, 0), (NOCHANGE, 0), (SLAVE, 57)]
    made.decide({1: 1})
    assert made.later == {1: 57} and made.log == []
    made.decide({1: 58})
    assert made.log == [("gained", 1)]


def test_a_connection_that_ends_or_is_replaced_is_lost():
    made, switch = Controller(), Switch()
    made.decide({1: 4})
    first = made.connect(switch, 1)
    second = made.connect(switch, 1)
    assert made.log == [("gained", 1), ("lost", 1), ("gained", 1)]
    made.roles.disconnected(first)
    assert second.owned and not first.owned
    made.roles.disconnected(second)
    assert made.log[-1] == ("lost", 1) and not second.owned and made.roles.reach() == {}


def test_other_errors_are_not_about_roles():
    made = Controller()
    datapath = made.connect(Switch(), 1)
    error = SimpleNamespace(datapath=datapath, type=ofp.OFPET_BAD_REQUEST, code=ofp.OFPBRC_BAD_LEN)
    assert made.roles.refused(error) is None


def test_a_database_from_an_older_copy_gets_ahead_of_the_switch_that_is_ours_already():
    made, switch = Controller(), Switch()
    datapath = made.connect(switch, 1)
    made.decide({1: 7})
    made.decide({1: 3})
    assert made.later == {1: 7}, "it is asked for, although we are its master"
    made.decide({1: 8})
    assert switch.generation == 8 and datapath.owned
    assert made.log == [("gained", 1), ("lost", 1), ("gained", 1)]


def test_a_switch_that_is_ours_is_given_up_although_its_generation_is_later_than_the_database_says():
    made, switch = Controller(), Switch()
    made.connect(switch, 1)
    made.decide({1: 7})
    made.decide({}, {1: 3})
    assert switch.master is None and made.log == [("gained", 1), ("lost", 1)]
