use super::wrap::{padded, printable, width, wrapped};

#[test]
fn chinese_takes_two_places_and_breaks_anywhere_but_before_punctuation() {
    assert_eq!((width("MTU 是 9000"), padded("中文", 6).as_str()), (11, "中文  "));
    assert_eq!(wrapped("两端通告的最大报文段长度，都不对。", 12), ["两端通告的最", "大报文段长", "度，都不对。"]);
    assert_eq!(wrapped("见（第一帧）", 4), ["见", "（第", "一", "帧）"]);
    for line in wrapped(&"抓包里有 12 个数据包，MTU 为 9000。".repeat(9), 20) {
        assert!(width(&line) <= 22 && !line.starts_with(['，', '。']), "{line}");
    }
}

#[test]
fn text_breaks_at_spaces_and_a_word_that_does_not_fit_stays_whole() {
    assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    assert_eq!(wrapped("a verylongwordindeed b", 8), ["a", "verylongwordindeed", "b"]);
    assert_eq!(wrapped("first\n\nsecond", 20), ["first", "", "second"]);
    assert_eq!(wrapped("", 20), Vec::<String>::new());
}

#[test]
fn what_a_terminal_would_act_on_is_shown_and_not_done() {
    assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\nd");
}
