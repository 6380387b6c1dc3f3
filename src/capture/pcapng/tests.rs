use super::super::testing::Pcapng;
use super::super::walk::testing::{Walked, walk_all, walk_limited};
use super::*;
use crate::options::Limits;

fn walk(bytes: &[u8]) -> Walked {
    walk_all(&mut PcapngWalker::default(), bytes, 0, Vec::new())
}

const S: i64 = 1_000_000_000;

#[test]
fn both_byte_orders_give_the_same_frames() {
    for big in [false, true] {
        let mut file = Pcapng::new(big);
        file.interface(1, 96, &[]).packet_of(0, 5_000_007, (3, 60), b"abc", &[]);
        let walked = walk(&file.bytes);
        let record = walked.records[0];
        assert_eq!(walked.times(), [Some(5 * S + 7_000)]);
        assert_eq!((record.captured_bytes, record.original_bytes), (3, 60));
        assert_eq!(&file.bytes[record.offset as usize..][..3], b"abc");
        assert_eq!((record.link, walked.interfaces[0].snap_length), (LinkType::ETHERNET, 96));
        assert!(walked.damage().is_none() && walked.findings.is_empty());
    }
}

#[test]
fn each_interface_has_its_own_clock() {
    for big in [false, true] {
        let mut file = Pcapng::new(big);
        let minus_hour = file.u64(-3600_i64 as u64);
        file.interface(1, 0, &[(IF_TSRESOL, &[3]), (0, &[])])
            .interface(1, 0, &[(IF_TSRESOL, &[12])])
            .interface(1, 0, &[(IF_TSRESOL, &[0x8a]), (0, &[])])
            .interface(1, 0, &[(IF_TSOFFSET, &minus_hour), (0, &[])])
            .interface(101, 0, &[(IF_TSRESOL, &[9]), (IF_TSOFFSET, &minus_hour), (0, &[])])
            .packet(0, 1_500, b"a", &[])
            .packet(1, 1_234_567_890_123, b"b", &[])
            .packet(2, 1_536, b"c", &[])
            .packet(3, 7_200_000_001, b"d", &[])
            .packet(4, 1, b"e", &[]);
        let walked = walk(&file.bytes);
        let expected = [1_500_000_000, 1_234_567_890, 1_500_000_000, 3_600 * S + 1_000, 1 - 3_600 * S];
        assert_eq!(walked.times(), expected.map(Some));
        let interfaces: Vec<u32> = walked.records.iter().map(|record| record.interface).collect();
        assert_eq!(interfaces, [0, 1, 2, 3, 4]);
        assert_eq!(walked.records[4].link, LinkType::RAW);
    }
}

#[test]
fn sections_of_differing_byte_order_have_interfaces_of_their_own() {
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]).packet(0, 1_000_000, b"a", &[]);
    file.section(true).interface(101, 0, &[(IF_TSRESOL, &[9])]).packet(0, 2_000_000_000, b"b", &[]);
    file.section(false).interface(113, 0, &[]).packet(0, 3_000_000, b"c", &[]);
    let walked = walk(&file.bytes);
    assert_eq!(walked.times(), [Some(S), Some(2 * S), Some(3 * S)]);
    let kinds: Vec<_> =
        walked.records.iter().map(|record| (record.interface, record.link.0, record.frame_no)).collect();
    assert_eq!(kinds, [(0, 1, 1), (1, 101, 2), (2, 113, 3)]);
}

#[test]
fn a_simple_packet_has_no_time_and_is_cut_at_the_first_interface_s_snap_length() {
    let mut file = Pcapng::new(false);
    file.interface(1, 4, &[]).interface(101, 9, &[]).simple(60, b"abcd").simple(3, b"xyz");
    let walked = walk(&file.bytes);
    let lengths: Vec<_> = walked.records.iter().map(|r| (r.captured_bytes, r.original_bytes)).collect();
    assert_eq!((walked.times(), lengths), (vec![None, None], vec![(4, 60), (3, 3)]));
    assert!(walked.findings.is_empty(), "no time is what the format says, not a fault");
}

#[test]
fn an_obsolete_packet_carries_its_drop_count() {
    for big in [false, true] {
        let mut file = Pcapng::new(big);
        file.interface(1, 0, &[]);
        for drops in [2, u16::MAX] {
            let mut body = [file.u16(0), file.u16(drops)].concat();
            for field in [0, 7, 3, 60] {
                body.extend(file.u32(field));
            }
            body.extend(b"abc\0");
            file.block(PACKET, &body);
        }
        let walked = walk(&file.bytes);
        assert_eq!(walked.times(), [Some(7_000), Some(7_000)]);
        assert_eq!((walked.codes(), walked.findings[0].value), (vec!["packet_drops"], Some(2)));
    }
}

#[test]
fn options_of_packets_keep_comments_and_drop_counts() {
    let mut file = Pcapng::new(true);
    let (flags, drops) = (file.u32(1), file.u64(9));
    let options: [(u16, &[u8]); 5] =
        [(OPT_COMMENT, b"first"), (2, &flags), (OPT_COMMENT, "第二".as_bytes()), (EPB_DROPCOUNT, &drops), (0, b"")];
    file.interface(1, 0, &[]).packet(0, 1, b"a", &options).packet(0, 2, b"abcd", &[(OPT_COMMENT, b"no end mark")]);
    file.packet(0, 3, b"b", &[(OPT_COMMENT, b"")]);
    let walked = walk(&file.bytes);
    let comments: Vec<_> = walked.comments.iter().map(|(at, text)| (*at, text.as_str())).collect();
    assert_eq!(comments, [(0, "first"), (0, "第二"), (1, "no end mark")]);
    assert_eq!(walked.records.iter().map(|r| r.flags).collect::<Vec<_>>(), [Record::COMMENT, Record::COMMENT, 0]);
    assert_eq!((walked.codes(), walked.findings[0].value), (vec!["packet_drops"], Some(9)));
}

#[test]
fn an_option_longer_than_its_block_ends_the_options_and_not_the_frame() {
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]);
    let mut body: Vec<u8> = [0_u32, 0, 5, 1, 1].iter().flat_map(|field| field.to_le_bytes()).collect();
    body.extend(b"a\0\0\0\x01\0\xff\xffcomment ");
    file.block(ENHANCED_PACKET, &body).packet(0, 6, b"b", &[]);
    let walked = walk(&file.bytes);
    assert_eq!(walked.times(), [Some(5_000), Some(6_000)]);
    assert!(walked.comments.is_empty());
}

#[test]
fn statistics_give_the_drops_of_the_interface_they_name() {
    for big in [false, true] {
        let mut file = Pcapng::new(big);
        let (drops, os_drops, unknown) = (file.u64(5), file.u64(6), file.u64(u64::MAX));
        file.interface(1, 0, &[]).interface(1, 0, &[]);
        let mut body = [file.u32(1), file.u32(0), file.u32(0)].concat();
        body.extend(file.options(&[(ISB_IFDROP, &drops), (ISB_OSDROP, &os_drops), (0, &[])]));
        file.block(INTERFACE_STATISTICS, &body);
        let mut body = [file.u32(0), file.u32(0), file.u32(0)].concat();
        body.extend(file.options(&[(ISB_IFDROP, &unknown), (0, &[])]));
        file.block(INTERFACE_STATISTICS, &body);
        let interfaces = walk(&file.bytes).interfaces;
        assert_eq!((interfaces[1].interface_drops, interfaces[1].os_drops), (Some(5), Some(6)));
        assert_eq!((interfaces[0].interface_drops, interfaces[0].os_drops), (None, None));
    }
}

#[test]
fn names_secrets_and_unknown_blocks_take_no_number_and_the_unknown_are_counted() {
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]).block(NAME_RESOLUTION, &[0; 4]).block(DECRYPTION_SECRETS, &[0; 8]);
    file.packet(0, 1, b"a", &[]).block(0x7777, &[1; 40]).block(0x7778, b"").packet(0, 2, b"b", &[]);
    let walked = walk(&file.bytes);
    assert_eq!(walked.records.iter().map(|record| record.frame_no).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((walked.codes(), walked.findings[0].count), (vec!["unknown_blocks"], 2));
    assert!(walked.findings[0].details.contains(&("type", "0x00007777".to_owned())));
}

#[test]
fn records_that_wireshark_numbers_take_a_number_without_being_packets() {
    // Sizes as tshark 4.0.17 gives them for the same blocks.
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]).packet(0, 1, b"a", &[]);
    file.block(CUSTOM, &[0; 28]).block(CUSTOM_NOT_COPIED, &[0; 64]).block(JOURNAL_EXPORT, b"MESSAGE=hi\n\n");
    file.block(0x204, &[0; 44]).packet(0, 2, b"b", &[]);
    let walked = walk(&file.bytes);
    let rows: Vec<_> = walked.records.iter().map(|r| (r.frame_no, r.link, r.captured_bytes, r.has_time())).collect();
    let other = LinkType::NO_PACKET;
    let expected = [
        (1, LinkType::ETHERNET, 1, true),
        (2, other, 24, false),
        (3, other, 60, false),
        (4, other, 12, false),
        (5, other, 20, false),
        (6, LinkType::ETHERNET, 1, true),
    ];
    assert_eq!(rows, expected);
    assert_eq!((walked.codes(), walked.findings[0].count), (vec!["other_records"], 4));
    assert_eq!((walked.records[1].interface, walked.interfaces[1].link), (1, other));
}

#[test]
fn a_packet_of_an_undescribed_interface_is_kept_without_time_and_link_type() {
    let mut file = Pcapng::new(false);
    file.packet(7, 5, b"a", &[]).interface(1, 0, &[]).packet(0, 5, b"b", &[]).packet(u32::MAX, 5, b"c", &[]);
    let walked = walk(&file.bytes);
    assert_eq!(walked.times(), [None, Some(5_000), None]);
    let links: Vec<_> = walked.records.iter().map(|record| (record.link, record.interface)).collect();
    assert_eq!(links, [(LinkType::UNKNOWN, 0), (LinkType::ETHERNET, 1), (LinkType::UNKNOWN, 0)]);
    assert_eq!((walked.codes(), walked.findings[0].count), (vec!["undescribed_interface"], 2));
}

#[test]
fn times_past_64_bits_are_null_and_counted() {
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]).packet(0, u64::MAX, b"a", &[]);
    let walked = walk(&file.bytes);
    assert_eq!((walked.times(), walked.codes()), (vec![None], vec!["unrepresentable_time"]));
}

#[test]
fn a_block_too_short_for_its_packet_is_left_out_and_named_by_its_byte() {
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]).packet(0, 1, b"a", &[]);
    let offset = file.bytes.len().to_string();
    file.packet_of(0, 2, (100, 100), b"b", &[]).block(ENHANCED_PACKET, b"").block(CUSTOM, b"").packet(0, 3, b"c", &[]);
    let walked = walk(&file.bytes);
    assert_eq!(walked.times(), [Some(1_000), Some(3_000)]);
    assert_eq!((walked.codes(), walked.findings[0].count), (vec!["malformed_blocks"], 3));
    assert!(walked.findings[0].details.contains(&("offset", offset)));
}

#[test]
fn lengths_that_cannot_be_end_the_reading() {
    let mut good = Pcapng::new(false);
    good.interface(1, 0, &[]).packet(0, 1, b"a", &[]);
    let at = good.bytes.len();
    for claimed in [0, 11, (16 << 20) + 1, u32::MAX] {
        let mut bytes = good.bytes.clone();
        bytes.extend(6_u32.to_le_bytes());
        bytes.extend(claimed.to_le_bytes());
        bytes.extend([0; 64]);
        let walked = walk(&bytes);
        assert_eq!((walked.records.len(), walked.at), (1, at));
        assert_eq!(walked.damage(), Some(Damage::AbsurdLength { claimed }));
    }
    let mut bytes = good.clone().packet(0, 2, b"b", &[]).bytes.clone();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&99_u32.to_le_bytes());
    assert_eq!(walk(&bytes).damage(), Some(Damage::LengthMismatch { first: 36, second: 99 }));
}

#[test]
fn a_length_without_its_padding_is_understood() {
    let mut bytes = Pcapng::new(false).interface(1, 0, &[]).bytes.clone();
    for field in [6_u32, 33, 0, 0, 1_000, 1, 1, 0x61, 33] {
        bytes.extend(field.to_le_bytes());
    }
    let walked = walk(&bytes);
    assert_eq!((walked.times(), walked.at), (vec![Some(1_000_000)], bytes.len()));
}

#[test]
fn a_section_of_another_version_is_not_guessed_at() {
    let good = Pcapng::new(false).interface(1, 0, &[]).packet(0, 1, b"a", &[]).bytes.clone();
    for (version, is_read) in [((1, 0), true), ((1, 2), true), ((1, 1), false), ((0, 1), false), ((2, 0), false)] {
        let mut bytes = good.clone();
        let (major, minor): (u16, u16) = version;
        bytes[12..14].copy_from_slice(&major.to_le_bytes());
        bytes[14..16].copy_from_slice(&minor.to_le_bytes());
        let walked = walk(&bytes);
        assert_eq!(walked.records.len(), usize::from(is_read), "{version:?}");
        assert_eq!(walked.damage(), (!is_read).then_some(Damage::Version { major, minor }));
    }
}

#[test]
fn blocks_before_a_section_or_with_a_wrong_byte_order_mark_are_not_read() {
    let mut file = Pcapng::default();
    file.interface(1, 0, &[]);
    assert_eq!(walk(&file.bytes).damage(), Some(Damage::NoSection));
    let mut bytes = Pcapng::new(false).bytes;
    bytes[8] ^= 1;
    assert_eq!(walk(&bytes).damage(), Some(Damage::BadByteOrder));
}

#[test]
fn interfaces_past_the_limit_get_no_other_interface_s_name() {
    let limits = Limits { interfaces: 2, ..Limits::default() };
    let mut file = Pcapng::new(false);
    for link in [1, 101, 113, 228] {
        file.interface(link, 0, &[]);
    }
    file.packet(1, 1, b"a", &[]).packet(3, 2, b"b", &[]);
    let walked = walk_limited(&mut PcapngWalker::default(), &file.bytes, 0, Vec::new(), &limits);
    let links: Vec<_> = walked.records.iter().map(|record| (record.link, record.interface)).collect();
    assert_eq!(links, [(LinkType::RAW, 1), (LinkType::UNKNOWN, 2)]);
    assert_eq!(walked.codes(), ["undescribed_interface", "interface_limit"]);
}

#[test]
fn comments_past_the_limit_are_counted_and_dropped() {
    let limits = Limits { comment_bytes: 10, ..Limits::default() };
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]);
    for _ in 0..3 {
        file.packet(0, 1, b"a", &[(OPT_COMMENT, b"sixsix")]);
    }
    let walked = walk_limited(&mut PcapngWalker::default(), &file.bytes, 0, Vec::new(), &limits);
    assert_eq!((walked.records.len(), walked.comments.len()), (3, 1));
    assert_eq!((walked.codes(), walked.findings[0].count), (vec!["comment_limit"], 2));
}

#[test]
fn every_truncation_keeps_the_frames_before_it() {
    let mut file = Pcapng::new(true);
    file.interface(1, 0, &[(IF_NAME, b"eth0")]).packet(0, 1, b"abc", &[(OPT_COMMENT, b"hi")]);
    let first = file.bytes.len();
    file.packet(0, 2, b"def", &[]);
    for length in 0..file.bytes.len() {
        let walked = walk(&file.bytes[..length]);
        assert_eq!(walked.records.len(), usize::from(length >= first), "{length}");
        assert!(matches!(walked.end, WalkEnd::NeedMore(need) if need > length));
    }
}

#[test]
fn interface_options_give_name_speed_and_fcs() {
    let mut file = Pcapng::new(true);
    let (speed, long) = (file.u64(100_000_000_000), vec![b'x'; 60_000]);
    file.interface(1, 0, &[(IF_NAME, b"mlx5_0\0\0"), (IF_DESCRIPTION, &long), (IF_SPEED, &speed), (IF_FCSLEN, &[32])]);
    let interface = walk(&file.bytes).interfaces[0].clone();
    assert_eq!(interface.name.as_deref(), Some("mlx5_0"));
    assert_eq!(interface.description.map(|text| text.len()), Some(NAME_BYTES));
    assert_eq!((interface.speed_bps, interface.fcs_bytes), (Some(100_000_000_000), 4));
}
