//! LLDP and DCBX: what ports announce, and whether it fits the other end of the link and the data.

use proptest::prelude::*;
use wirelab::{Input, ScanRequest, TableId};

use crate::support::cells::{self, Value};
use crate::support::generate::{Packet, START_NS, pcap, udp};
use crate::support::{TableBatches, outside_folder, tables, with_threads};

fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let head = u16::from(kind) << 9 | value.len() as u16;
    [&head.to_be_bytes(), value].concat()
}

fn ieee(subtype: u8, content: &[u8]) -> Vec<u8> {
    tlv(127, &[&[0x00, 0x80, 0xc2, subtype], content].concat())
}

/// PFC configuration: willing, and the bits of the lossless priorities.
fn pfc(is_willing: bool, enabled: u8) -> Vec<u8> {
    ieee(11, &[u8::from(is_willing) << 7 | 8, enabled])
}

/// An application priority of RoCEv2 or of a DSCP.
fn app(priority: u8, selector: u8, protocol: u16) -> Vec<u8> {
    let [high, low] = protocol.to_be_bytes();
    ieee(12, &[0, priority << 5 | selector, high, low])
}

/// An LLDP frame of a system, to the nearest bridge.
fn lldp(mac: u8, system: &str, hold_s: u8, tlvs: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, mac, 0x88, 0xcc];
    frame.extend(tlv(1, &[4, 2, 0, 0, 0, 0, mac]));
    frame.extend(tlv(2, b"\x05swp1"));
    frame.extend(tlv(3, &[0, hold_s]));
    frame.extend(tlv(5, system.as_bytes()));
    frame.extend(tlvs.concat());
    frame.extend(tlv(0, &[]));
    frame
}

/// A RoCEv2 SEND with a type of service.
fn send(tos: u8, psn: u8) -> Vec<u8> {
    let mut frame = udp([10, 0, 0, 1], [10, 0, 0, 2], (0xd123, 4_791), 12 + 64 + 4);
    frame[42..54].copy_from_slice(&[0x04, 0x40, 0xff, 0xff, 0, 0, 0, 0x20, 0x80, 0, 0, psn]);
    frame[15] = tos;
    frame
}

fn table(frames: &[Vec<u8>], id: TableId) -> TableBatches {
    let packets: Vec<_> =
        (0..).zip(frames).map(|(at, bytes)| Packet { time_ns: START_NS + at * 1_000, bytes: bytes.clone() }).collect();
    let inputs = vec![Input::Bytes(pcap(&packets).into())];
    tables(inputs, &with_threads(1), &[ScanRequest::new(id)]).unwrap().remove(0)
}

/// Findings on priorities, each with its English sentence.
fn findings(frames: &[Vec<u8>]) -> Vec<(String, String)> {
    let quality = table(frames, TableId::CaptureQuality);
    let codes = cells::texts(&quality.batches, "code").into_iter();
    let found =
        codes.zip(cells::texts(&quality.batches, "message_en")).zip(cells::texts(&quality.batches, "message_zh"));
    let ours = ["lldp_pfc_mismatch", "lldp_pfc_pending", "lldp_pfc_one_end", "lldp_roce_lossy", "roce_not_lossless"];
    found
        .filter(|((code, _), _)| ours.contains(&code.as_str()))
        .map(|((code, en), zh)| {
            // Names of ports come from the capture and may hold braces themselves.
            let is_open = |text: &str| text.split('{').skip(1).any(|part| part.find('}').is_some_and(|end| end > 2));
            assert!(!is_open(&en) && !is_open(&zh), "{en} {zh}");
            (code, en)
        })
        .collect()
}

fn codes(frames: &[Vec<u8>]) -> Vec<String> {
    findings(frames).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn a_row_holds_what_a_port_announces() {
    let ets = [0x03, 0x01, 0x23, 0, 0, 50, 50, 0, 0, 0, 0, 0, 0, 2, 2, 0, 1, 255, 7, 0, 0];
    let frames = [
        send(0, 1),
        lldp(
            7,
            "leaf1",
            120,
            &[pfc(true, 0b0001_1000), ieee(9, &ets), app(3, 3, 4_791), tlv(127, &[0, 0x12, 0x0f, 4, 0x24, 0x0c])],
        ),
        lldp(8, "host1", 0, &[]),
    ];
    let lldp = table(&frames, TableId::Lldp);
    let text = |name| cells::column(&lldp.batches, name)[0].text().unwrap().to_owned();
    let expected = [
        ("src_mac", "02:00:00:00:00:07"),
        ("dst_mac", "01:80:c2:00:00:0e"),
        ("chassis_id", "02:00:00:00:00:07"),
        ("chassis_id_kind", "mac_address"),
        ("port_id", "swp1"),
        ("port_id_kind", "interface_name"),
        ("system_name", "leaf1"),
        ("dcbx", "ieee"),
        ("pfc_priorities", "3,4"),
        ("ets_classes", "0,1,2,3,0,0,0,0"),
        ("ets_bandwidths", "50,50,0,0,0,0,0,0"),
        ("ets_algorithms", "ets,ets,strict,cbs,vendor,7,strict,strict"),
        ("app_priorities", "udp:4791=3"),
    ];
    for (name, value) in expected {
        assert_eq!(text(name), value, "{name}");
    }
    let int = |name| cells::column(&lldp.batches, name)[0].int().unwrap();
    assert_eq!((int("frame_no"), int("hold_ns"), int("max_frame_bytes")), (2, 120_000_000_000, 9_228));
    assert_eq!(
        (int("pfc_mask"), int("pfc_max_classes"), int("ets_max_classes"), int("roce_v2_priority")),
        (0x18, 8, 3, 3)
    );
    assert_eq!(cells::column(&lldp.batches, "is_pfc_willing"), [Value::Bool(true), Value::Null]);
    for name in
        ["dcbx", "pfc_priorities", "pfc_mask", "app_priorities", "max_frame_bytes", "problem", "roce_v1_priority"]
    {
        assert_eq!(cells::column(&lldp.batches, name)[1], Value::Null, "{name}");
    }
}

#[test]
fn ends_that_disagree_on_lossless_priorities_are_told_unless_one_gives_way() {
    let ends = |a: &[Vec<u8>], b: &[Vec<u8>]| [lldp(7, "leaf1", 120, a), lldp(8, "host1", 120, b)];
    let found = findings(&ends(&[pfc(false, 0b1000)], &[pfc(false, 0b1_0000)]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "lldp_pfc_mismatch");
    assert!(found[0].1.contains("leaf1 swp1 says 3, host1 swp1 says 4"), "{}", found[0].1);
    assert_eq!(codes(&ends(&[pfc(false, 8)], &[pfc(true, 8)])), [""; 0]);
    let found = findings(&ends(&[pfc(false, 8)], &[pfc(true, 0)]));
    assert_eq!(found[0].0, "lldp_pfc_pending");
    assert!(found[0].1.contains("host1 swp1 is willing"), "{}", found[0].1);
    assert_eq!(codes(&ends(&[pfc(false, 8)], &[])), ["lldp_pfc_one_end"]);
    assert_eq!(codes(&ends(&[], &[])), [""; 0]);
    // What was said last counts, and a port that took back what it said is gone.
    let again =
        [ends(&[pfc(false, 8)], &[pfc(false, 16)]).to_vec(), vec![lldp(8, "host1", 120, &[pfc(false, 8)])]].concat();
    assert_eq!(codes(&again), [""; 0]);
    let gone = [ends(&[pfc(false, 8)], &[pfc(false, 16)]).to_vec(), vec![lldp(8, "host1", 0, &[])]].concat();
    assert_eq!(codes(&gone), [""; 0]);
    // Three ports are a mirror: nobody knows which two share a link.
    let three =
        [ends(&[pfc(false, 8)], &[pfc(false, 16)]).to_vec(), vec![lldp(9, "host2", 120, &[pfc(false, 1)])]].concat();
    assert_eq!(codes(&three), [""; 0]);
    // A frame that other bridges pass on is not from the other end of the link.
    let mut far = lldp(8, "host1", 120, &[pfc(false, 16)]);
    far[5] = 0x00;
    assert_eq!(codes(&[lldp(7, "leaf1", 120, &[pfc(false, 8)]), far]), [""; 0]);
}

#[test]
fn what_each_port_has_lossless_is_told() {
    let said = |tlvs: &[Vec<u8>]| {
        let quality = table(&[lldp(7, "leaf1", 120, tlvs)], TableId::CaptureQuality);
        let codes = cells::texts(&quality.batches, "code").into_iter();
        let sentences = ["message_en", "message_zh"].map(|name| cells::texts(&quality.batches, name));
        codes.zip(sentences[0].clone()).zip(sentences[1].clone()).find(|((code, _), _)| code == "lldp_priorities")
    };
    let ((_, en), zh) = said(&[pfc(true, 0b1_1000), app(3, 3, 4_791)]).expect("a finding");
    assert_eq!(
        en,
        "leaf1 swp1 announces by DCBX (LLDP from frame 1 on): lossless priorities 3, 4; priority for RoCEv2 3; \
         willing to take over what the other end says."
    );
    assert!(zh.contains("无损优先级 3，4；RoCEv2 的优先级 3；愿意采用对端的配置"), "{zh}");
    let ((_, en), zh) = said(&[pfc(false, 0)]).expect("a finding");
    assert!(en.contains("lossless priorities none; priority for RoCEv2 none; not willing"), "{en}");
    assert!(zh.contains("无损优先级 无；RoCEv2 的优先级 无；不采用"), "{zh}");
    assert_eq!(said(&[]), None);
}

#[test]
fn data_in_a_priority_that_is_not_lossless_is_told() {
    let both = |tlvs: &[Vec<u8>]| vec![lldp(7, "leaf1", 120, tlvs), lldp(8, "host1", 120, tlvs)];
    let with = |tlvs: &[Vec<u8>], data: Vec<u8>| codes(&[both(tlvs), vec![data]].concat());
    // DSCP 26 is priority 3, unless the table that DCBX announces says otherwise, or the frame is tagged.
    assert_eq!(with(&[pfc(false, 8)], send(0x6a, 1)), [""; 0]);
    assert_eq!(with(&[pfc(false, 16)], send(0x6a, 1)), ["roce_not_lossless"]);
    assert_eq!(with(&[pfc(false, 16), app(4, 5, 26)], send(0x6a, 1)), [""; 0]);
    let mut tagged = send(0x6a, 1);
    tagged.splice(12..12, [0x81, 0x00, 4 << 5, 1]);
    assert_eq!(with(&[pfc(false, 16)], tagged), [""; 0]);
    let found = findings(&[both(&[pfc(false, 0)]), vec![send(0x6a, 1)]].concat());
    assert!(found[0].1.contains("priority 3") && found[0].1.contains("lossless: none"), "{}", found[0].1);
    // Without DCBX nothing is known.
    assert_eq!(with(&[], send(0, 1)), [""; 0]);
    // Who follows the announced priority of RoCEv2 is not protected.
    assert_eq!(with(&[pfc(false, 8), app(4, 3, 4_791)], send(0x6a, 1)), ["lldp_roce_lossy", "lldp_roce_lossy"]);
    assert_eq!(with(&[pfc(false, 8), app(3, 3, 4_791)], send(0x6a, 1)), [""; 0]);
}

#[test]
fn every_cut_of_a_frame_is_read_without_harm() {
    let whole = lldp(7, "leaf1", 120, &[pfc(true, 8), app(3, 3, 4_791)]);
    for length in 0..whole.len() {
        let frames = [whole[..length].to_vec()];
        let rows = table(&frames, TableId::Lldp);
        assert_eq!(rows.num_rows(), usize::from(length >= 14), "{length}");
        findings(&frames);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_change_of_bytes_does_harm(changes in prop::collection::vec((14_usize..160, any::<u8>()), 1..12), cut in 14_usize..400) {
        let cee = tlv(127, &[&[0x00, 0x1b, 0x21, 2][..], &tlv(3, &[0, 0, 0xc0, 0, 8, 8]), &tlv(4, &[0; 10])].concat());
        let ets = ieee(9, &[0x83; 21]);
        let mut frame = lldp(7, "leaf1", 120, &[pfc(true, 8), app(3, 3, 4_791), ets, cee, tlv(8, &[5, 1, 192, 0, 2, 1, 2, 0, 0, 0, 3, 0])]);
        for (at, byte) in changes {
            if let Some(place) = frame.get_mut(at) {
                *place = byte;
            }
        }
        frame.truncate(cut.max(14));
        let frames = [frame, lldp(8, "host1", 120, &[pfc(false, 1)])];
        let rows = table(&frames, TableId::Lldp);
        prop_assert_eq!(rows.num_rows(), 2);
        for row in 0..2 {
            let cell = |name| cells::column(&rows.batches, name)[row].clone();
            // A mask and its list say the same.
            let listed = cell("pfc_priorities").text().map(|text| text.split(',').filter(|part| !part.is_empty()).count());
            let bits = cell("pfc_mask").int().map(|mask| mask.count_ones() as usize);
            prop_assert_eq!(listed, bits);
            prop_assert!(cell("tlv_count").int().unwrap() <= 200);
        }
        findings(&frames);
    }
}

#[test]
fn real_captures_hold_dcbx_as_wireshark_reads_it() {
    let Some(folder) = outside_folder("WIRELAB_CORPUS", "../shared/corpus") else { return };
    let of = |name: &str| {
        let path = folder.join("pcaps/the-tcpdump-group+tcpdump/tests").join(name);
        tables(vec![Input::Path(path)], &with_threads(1), &[ScanRequest::new(TableId::Lldp)]).unwrap().remove(0)
    };
    // Frame 3 of the one and frame 3 of the other, as tshark 4.0 reads them.
    let first = |table: &TableBatches, name: &str| {
        let found = cells::column(&table.batches, name).into_iter().find(|cell| *cell != Value::Null);
        found.unwrap().text().unwrap().to_owned()
    };
    let ets = of("dcb_ets.pcap");
    assert_eq!(first(&ets, "ets_classes"), "15,4,1,1,15,4,1,4");
    assert_eq!(first(&ets, "ets_recommended_bandwidths"), "0,50,0,0,50,0,0,0");
    assert_eq!(first(&ets, "ets_algorithms"), "strict,ets,strict,strict,ets,strict,strict,strict");
    let pfc = of("dcb_pfc.pcap");
    assert_eq!(first(&pfc, "pfc_priorities"), "2,4,5");
    assert!(cells::column(&pfc.batches, "is_pfc_willing").contains(&Value::Bool(false)));
}
