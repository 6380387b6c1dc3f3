//! All queue pairs of some address pairs: finds whose packet it is, and who answers whom.

mod waiting;

use std::collections::BinaryHeap;

use hashbrown::HashMap;

use super::channel::{Channel, ChannelEnds};
use super::cm::{CmWatch, Opened};
use super::endpoints::Endpoints;
use super::message::{Found, Message, Messages};
use super::path::{Path, Tap};
use super::psn::Psn;
use super::types::*;
use crate::analyze::HoldLimits;
use crate::wire::{CmMessage, Ip};
use waiting::Due;

/// Marks a message number as the place in this part's list of new messages: its number in the capture is not given yet.
pub(crate) const FRESH: u64 = 1 << 63;
/// No message, or no queue pair.
pub(crate) const NO_MESSAGE: u64 = u64::MAX;
pub(crate) const NO_CHANNEL: u32 = u32::MAX;

/// Queue pairs of one fabric.
const MOST_CHANNELS: usize = 16_384;
/// Queue pairs between two addresses that an acknowledgement of nobody known is compared with.
const CANDIDATES: usize = 256;
/// A message that starts so far from what was sent last belongs to another connection on the same number.
pub(super) const FAR: i32 = 1 << 20;
/// The first request seen may be so far behind the first one sent: those before it were lost.
const FIRST_WINDOW: i32 = 4_096;

/// Where a packet of this part belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub at: u32,
    pub channel: u32,
    /// Number of its message; with [`FRESH`] the place in the list of new ones; [`NO_MESSAGE`] for none.
    pub message: u64,
}

/// A message that nothing more is told of.
#[derive(Debug)]
pub(crate) struct Finished {
    pub channel: u32,
    /// As far as it was known by then.
    pub requester_qp: Option<u32>,
    pub message: Message,
}

/// What came out of the packets told since [`Fabric::begin_part`].
#[derive(Debug, Default)]
pub(crate) struct Outs {
    /// Until they are taken.
    pub judgements: Vec<RoceJudgement>,
    pub placed: Vec<Placed>,
    /// Rows that turned out to be of another message, until they are taken: row, number of the message, judgements before.
    pub moved: Vec<(u64, u64, usize)>,
    /// Messages that began in this part: place of the first packet in its window, queue pair, running number there.
    pub fresh: Vec<(u32, u32, u64)>,
    pub finished: Vec<Finished>,
    /// Places of requests that the network copied.
    pub network_copies: Vec<u32>,
}

impl Outs {
    /// What stands for the number of a message until that is given.
    pub(super) fn number(&mut self, at: u32, channel: u32, message: Found, messages: &mut Messages) -> u64 {
        match message {
            Found::New(place) => {
                let id = FRESH | self.fresh.len() as u64;
                if let Some(message) = messages.get_mut(place) {
                    message.id = id;
                    self.fresh.push((at, channel, message.number));
                }
                id
            }
            Found::Known(place) => messages.get(place).map_or(NO_MESSAGE, |message| message.id),
            Found::None => NO_MESSAGE,
        }
    }
}

#[derive(Debug)]
struct Pair {
    path: Path,
    /// Queue pairs that send, by direction.
    channels: [Vec<u32>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Known {
    requester_qp: u32,
    /// Number of its first request.
    psn: Option<Psn>,
    by: PairedBy,
    path_mtu: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PairKey {
    low: Ip,
    high: Ip,
    vni: Option<u32>,
    interface: u32,
}

/// Packets that came to the fabric and found no place in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    pub over_limit: u64,
    /// Answers to queue pairs of which no request was seen.
    pub without_requests: u64,
}

/// The queue pairs of one shard.
#[derive(Default)]
pub(crate) struct Fabric {
    pairs: Vec<Pair>,
    pair_index: HashMap<PairKey, u32>,
    channels: Vec<Channel>,
    /// By pair, direction of the requests, queue pair they go to (and come from, for datagrams), service.
    requests: HashMap<(u32, u8, u64, Service), u32>,
    /// By pair, direction of the requests, queue pair they come from.
    requesters: HashMap<(u32, u8, u32), u32>,
    /// What is known of queue pairs before their packets come: by pair, direction, responder's queue pair.
    known: HashMap<(u32, u8, u32), Known>,
    endpoints: Endpoints,
    cm: CmWatch,
    limits: HoldLimits,
    /// Queue pairs with requests that wait, each once: the one whose first has waited longest on top.
    due: BinaryHeap<Due>,
    /// Queue pairs that are not at rest.
    active: Vec<u32>,
    next_rest_ns: Option<i64>,
    /// No message that is not given out has a number below.
    oldest_message: u64,
    numbered: usize,
    pub left_out: LeftOut,
    pub out: Outs,
}

impl Fabric {
    /// `endpoints` are queue pairs that logs beside the capture name: both ends of each connection.
    pub fn new(limits: HoldLimits, endpoints: &[RoceEndpoint]) -> Self {
        Self { limits, endpoints: Endpoints::new(endpoints), ..Self::default() }
    }

    /// Forgets what came out so far, but for what waits to be taken.
    pub fn begin_part(&mut self) {
        self.out.placed.clear();
        self.out.fresh.clear();
        self.out.network_copies.clear();
    }

    pub fn on_packet(&mut self, seen: &RoceSeen<'_>) {
        self.catch_up(seen.moment);
        let direction = u8::from(seen.src_ip > seen.dst_ip);
        let pair = self.pair(seen, direction);
        if let Some(is_from_us) = seen.is_from_us {
            self.path(pair).is_from_us(direction, is_from_us);
        }
        if self.path(pair).is_damaged(direction, seen) {
            return self.on_damaged(seen, pair, direction);
        }
        match Role::of(seen.packet.opcode) {
            Role::Request(operation, starts, ends) => {
                self.on_request(seen, pair, direction, (operation, starts, ends));
            }
            Role::Notification => self.on_notification(seen, pair, direction ^ 1),
            Role::Other => {}
            role => self.on_response(seen, pair, direction ^ 1, role),
        }
    }

    fn path(&mut self, pair: u32) -> &mut Path {
        &mut self.pairs[pair as usize].path
    }

    fn pair(&mut self, seen: &RoceSeen<'_>, direction: u8) -> u32 {
        let (low, high) = if direction == 0 { (seen.src_ip, seen.dst_ip) } else { (seen.dst_ip, seen.src_ip) };
        let key = PairKey { low, high, vni: seen.vni, interface: seen.interface };
        if let Some(pair) = self.pair_index.get(&key) {
            return *pair;
        }
        // Beyond the limit all address pairs share the last one: their queue pairs are over the limit as well.
        if self.pairs.len() > MOST_CHANNELS {
            return self.pairs.len() as u32 - 1;
        }
        let pair = self.pairs.len() as u32;
        self.pairs.push(Pair { path: Path::default(), channels: [Vec::new(), Vec::new()] });
        self.pair_index.insert(key, pair);
        pair
    }

    fn on_damaged(&mut self, seen: &RoceSeen<'_>, pair: u32, direction: u8) {
        self.out.judgements.push(RoceJudgement {
            row: seen.row,
            sent: None,
            cause: None,
            arrival: Some(Arrival::Damaged),
            evidence: Evidence::DAMAGE,
        });
        // The damage may be in the very fields that name the queue pair.
        let Some(service) = Service::of(seen.packet.opcode) else { return };
        let key = (pair, direction, request_key(seen, service), service);
        if let Some(channel) = self.requests.get(&key).copied() {
            self.channels[channel as usize].counts.damaged += 1;
            self.out.placed.push(Placed { at: seen.at, channel, message: NO_MESSAGE });
        }
    }

    fn on_request(&mut self, seen: &RoceSeen<'_>, pair: u32, direction: u8, role: (Operation, bool, bool)) {
        let Some(service) = Service::of(seen.packet.opcode) else { return };
        let key = (pair, direction, request_key(seen, service), service);
        let known = self.requests.get(&key).copied().filter(|channel| {
            let channel = &self.channels[*channel as usize];
            let is_far = service != Service::Ud && channel.distance(seen.psn()).unsigned_abs() > FAR as u32;
            !(is_far && role.1)
        });
        let Some(index) = known.or_else(|| self.add(seen, pair, direction, key)) else {
            self.left_out.over_limit += 1;
            self.out.judgements.push(RoceJudgement {
                row: seen.row,
                sent: Some(Sent::Unknown),
                cause: None,
                arrival: Some(Arrival::Unknown),
                evidence: Evidence::default(),
            });
            return;
        };
        self.show(index, pair, seen, |channel, path, out| channel.on_request(seen, role, path, out, index));
        if let Some(message) = seen.cm {
            self.on_cm(pair, direction, message, seen, index);
        }
    }

    fn add(&mut self, seen: &RoceSeen<'_>, pair: u32, direction: u8, key: (u32, u8, u64, Service)) -> Option<u32> {
        if self.channels.len() >= MOST_CHANNELS {
            return None;
        }
        let index = self.channels.len() as u32;
        let service = key.3;
        let responder_qp = seen.packet.dest_qp;
        let source = seen.packet.deth.map(|deth| deth.1).filter(|_| service == Service::Ud);
        let ends = ChannelEnds {
            requester_ip: seen.src_ip,
            responder_ip: seen.dst_ip,
            requester_qp: source,
            responder_qp,
            service,
            vni: seen.vni,
            interface: seen.interface,
            pair,
            direction,
        };
        let mut channel = Channel::new(ends, seen);
        if source.is_some() {
            channel.paired_by = PairedBy::Deth;
        } else if service != Service::Ud {
            let known = self.known.remove(&(pair, direction, responder_qp)).or_else(|| self.by_log(seen));
            if let Some(known) = known {
                channel.ends.requester_qp = Some(known.requester_qp);
                channel.paired_by = known.by;
                channel.set_mtu(known.path_mtu);
                // A capture that began later shows other numbers.
                let is_start = |psn: &Psn| (0..FIRST_WINDOW).contains(&seen.psn().since(*psn));
                if let Some(psn) = known.psn.filter(is_start) {
                    channel.start_at(psn);
                }
                self.requesters.insert((pair, direction, known.requester_qp), index);
            }
        }
        self.channels.push(channel);
        self.requests.insert(key, index);
        self.pairs[pair as usize].channels[usize::from(direction)].push(index);
        Some(index)
    }

    /// The requester of a first request, by what logs say.
    fn by_log(&self, seen: &RoceSeen<'_>) -> Option<Known> {
        let end = self.endpoints.requester_of(seen)?;
        Some(Known { requester_qp: end.qpn, psn: Some(Psn::new(end.psn)), by: PairedBy::Log, path_mtu: None })
    }

    fn on_response(&mut self, seen: &RoceSeen<'_>, pair: u32, direction: u8, role: Role) {
        let requester_qp = seen.packet.dest_qp;
        let known = self.requesters.get(&(pair, direction, requester_qp)).copied();
        let Some(index) = known.or_else(|| self.pair_by_psn(pair, direction, requester_qp, seen.psn())) else {
            self.left_out.without_requests += 1;
            self.out.judgements.push(RoceJudgement {
                row: seen.row,
                sent: None,
                cause: None,
                arrival: None,
                evidence: Evidence::default(),
            });
            return;
        };
        self.show(index, pair, seen, |channel, path, out| channel.on_response(seen, role, path, out, index));
    }

    /// Shows a packet to its queue pair: what was due before is done first, and what waits from now on is watched.
    fn show(
        &mut self,
        index: u32,
        pair: u32,
        seen: &RoceSeen<'_>,
        show: impl FnOnce(&mut Channel, &mut Path, &mut Outs),
    ) {
        self.catch_up_with(index, seen.moment);
        show(&mut self.channels[index as usize], &mut self.pairs[pair as usize].path, &mut self.out);
        self.keep_watch(index);
    }

    /// The queue pair whose requests an acknowledgement fits, if it is the only one.
    fn pair_by_psn(&mut self, pair: u32, direction: u8, requester_qp: u32, psn: Psn) -> Option<u32> {
        let listed = self.pairs.get(pair as usize)?.channels.get(usize::from(direction))?;
        let channels = &self.channels;
        let fitting = |index: &&u32| {
            let channel = &channels[**index as usize];
            channel.ends.requester_qp.is_none() && channel.ends.service.is_reliable() && channel.expects_ack_of(psn)
        };
        let mut fit = listed.iter().rev().take(CANDIDATES).filter(fitting);
        let first = *fit.next()?;
        let (index, by) = match fit.next() {
            None => (first, PairedBy::Psn),
            Some(_) => {
                let same =
                    |index: &&u32| fitting(index) && channels[**index as usize].ends.responder_qp == requester_qp;
                (*listed.iter().rev().take(CANDIDATES).find(same)?, PairedBy::SameNumber)
            }
        };
        let channel = &mut self.channels[index as usize];
        channel.ends.requester_qp = Some(requester_qp);
        channel.paired_by = by;
        let responder_qp = channel.ends.responder_qp;
        self.requesters.insert((pair, direction, requester_qp), index);
        // The same two queue pairs the other way round.
        let back = direction ^ 1;
        let service = channel.ends.service;
        match self.requests.get(&(pair, back, u64::from(requester_qp), service)).copied() {
            Some(peer) => {
                let peer_channel = &mut self.channels[peer as usize];
                if peer_channel.ends.requester_qp.is_none() {
                    peer_channel.ends.requester_qp = Some(responder_qp);
                    peer_channel.paired_by = by;
                    self.requesters.insert((pair, back, responder_qp), peer);
                }
            }
            None => {
                let known = Known { requester_qp: responder_qp, psn: None, by, path_mtu: None };
                self.known.insert((pair, back, requester_qp), known);
            }
        }
        Some(index)
    }

    fn on_notification(&mut self, seen: &RoceSeen<'_>, pair: u32, direction: u8) {
        self.out.judgements.push(RoceJudgement {
            row: seen.row,
            sent: None,
            cause: None,
            arrival: None,
            evidence: Evidence::default(),
        });
        let by_number = self.requesters.get(&(pair, direction, seen.packet.dest_qp)).copied();
        // Without an acknowledgement nobody knows whose number it is, unless one queue pair alone sends.
        let only = || {
            let listed = self.pairs.get(pair as usize)?.channels.get(usize::from(direction))?;
            let is_data = |index: &&u32| self.channels[**index as usize].ends.service != Service::Ud;
            let mut data = listed.iter().rev().take(CANDIDATES).filter(is_data);
            let index = *data.next()?;
            let requester_qp = self.channels[index as usize].ends.requester_qp;
            let is_it = data.next().is_none() && requester_qp.is_none_or(|qp| qp == seen.packet.dest_qp);
            is_it.then_some(index)
        };
        // A queue pair that only answers READs is slowed as well: there it is the responder's.
        let of_responder = || {
            let listed = self.pairs.get(pair as usize)?.channels.get(usize::from(direction ^ 1))?;
            let is_it = |index: &&u32| {
                let channel = &self.channels[**index as usize];
                channel.ends.responder_qp == seen.packet.dest_qp && channel.counts.responses > 0
            };
            listed.iter().rev().take(CANDIDATES).find(is_it).copied()
        };
        let (index, is_response) = match (by_number, of_responder()) {
            (Some(index), _) => (index, false),
            (None, Some(index)) => (index, true),
            (None, None) => match only() {
                Some(index) => (index, false),
                None => {
                    self.left_out.without_requests += 1;
                    return;
                }
            },
        };
        let channel = &mut self.channels[index as usize];
        if is_response {
            channel.on_response_notification(seen);
        } else {
            channel.on_notification(seen);
        }
        self.out.placed.push(Placed { at: seen.at, channel: index, message: NO_MESSAGE });
    }

    fn on_cm(&mut self, pair: u32, direction: u8, message: &CmMessage, seen: &RoceSeen<'_>, index: u32) {
        let news = self.cm.on_message(pair, direction, message, seen);
        if let Some(event) = news.event {
            self.channels[index as usize].story.push(event);
        }
        let Some(Opened { direction, active, passive, path_mtu }) = news.opened else { return };
        for (direction, own, peer) in [(direction, active, passive), (direction ^ 1, passive, active)] {
            let known = Known { requester_qp: own.0, psn: own.1, by: PairedBy::Cm, path_mtu };
            if self.known.len() < MOST_CHANNELS {
                self.known.insert((pair, direction, peer.0), known);
            }
            // A queue pair of that number was another connection's.
            for service in [Service::Rc, Service::Uc, Service::Xrc] {
                self.requests.remove(&(pair, direction, u64::from(peer.0), service));
            }
            self.requesters.remove(&(pair, direction, own.0));
        }
    }

    /// Queue pairs that are new since the last call, for numbering.
    pub fn unnumbered(&mut self) -> impl Iterator<Item = &mut Channel> {
        let from = std::mem::replace(&mut self.numbered, self.channels.len());
        self.channels.iter_mut().skip(from)
    }

    /// Gives the messages that began in this part their numbers, in the order of [`Outs::fresh`].
    pub fn number_messages(&mut self, ids: &[u64]) {
        for ((_, channel, number), id) in self.out.fresh.iter().zip(ids) {
            if let Some(message) =
                self.channels.get_mut(*channel as usize).and_then(|channel| channel.messages.numbered_mut(*number))
            {
                message.id = *id;
            }
        }
        let resolve = |code: &mut u64| {
            if *code != NO_MESSAGE && *code & FRESH != 0 {
                *code = ids.get((*code & !FRESH) as usize).copied().unwrap_or(NO_MESSAGE);
            }
        };
        self.out.placed.iter_mut().for_each(|placed| resolve(&mut placed.message));
        self.out.moved.iter_mut().for_each(|(_, message, _)| resolve(message));
        self.out.finished.iter_mut().for_each(|finished| resolve(&mut finished.message.id));
    }

    pub fn channel(&self, index: u32) -> Option<&Channel> {
        self.channels.get(index as usize)
    }

    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.iter()
    }

    pub fn tap(&self, channel: &Channel) -> Tap {
        self.pairs.get(channel.ends.pair as usize).map_or(Tap::Unknown, |pair| channel.tap(&pair.path))
    }

    /// The same, where the capture itself says it.
    pub fn tap_by_host(&self, channel: &Channel) -> Option<Tap> {
        self.pairs.get(channel.ends.pair as usize)?.path.tap_by_host(channel.ends.direction)
    }
}

/// The queue pair that a request goes to; a datagram's source counts too.
fn request_key(seen: &RoceSeen<'_>, service: Service) -> u64 {
    let source = seen.packet.deth.map_or(0, |deth| deth.1);
    u64::from(seen.packet.dest_qp) | if service == Service::Ud { u64::from(source) << 24 } else { 0 }
}
