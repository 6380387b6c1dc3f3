//! Tables of a submission that come from no capture and no log: its files, the findings on it, and lines of text.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::error::Error;
use crate::grade::report::{FileFacts, SubmissionFinding};
use crate::open::TableData;
use crate::sql::Source;

/// Lines of a text that are read.
const MOST_LINES: usize = 1_000_000;

/// Tables that are all there.
struct Tables(Vec<(&'static str, Arc<TableData>)>);

impl Source for Tables {
    fn table_names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    fn table(&self, name: &str) -> Option<Result<Arc<TableData>, Error>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, table)| Ok(Arc::clone(table)))
    }
}

/// `files` and `findings`.
pub(super) fn submission_source(files: &[FileFacts], findings: &[SubmissionFinding]) -> Result<Arc<dyn Source>, Error> {
    let files = table([
        ("name", text(files.iter().map(|file| Some(file.name.as_str())))),
        ("sha256", text(files.iter().map(|file| Some(file.sha256.as_str())))),
        ("size", whole(files.iter().map(|file| i64::try_from(file.bytes).ok()))),
        ("kind", text(files.iter().map(|file| Some(file.kind.as_str())))),
        ("input", text(files.iter().map(|file| file.input.as_deref()))),
    ])?;
    let findings = table([
        ("code", text(findings.iter().map(|finding| Some(finding.code.as_str())))),
        ("severity", text(findings.iter().map(|finding| Some(finding.severity.as_str())))),
        ("file", text(findings.iter().map(|finding| finding.file.as_deref()))),
        ("message_en", text(findings.iter().map(|finding| Some(finding.message.en.as_str())))),
        ("message_zh", text(findings.iter().map(|finding| Some(finding.message.zh.as_str())))),
    ])?;
    Ok(Arc::new(Tables(vec![("files", files), ("findings", findings)])))
}

/// `lines` of a text file: `line_no` from 1, and `text`.
pub(super) fn lines_source(bytes: &[u8]) -> Result<Arc<dyn Source>, Error> {
    let text_of_file = decoded(bytes);
    let lines: Vec<&str> = text_of_file.lines().take(MOST_LINES).collect();
    let lines = table([
        ("line_no", whole((1..).take(lines.len()).map(Some))),
        ("text", text(lines.iter().map(|line| Some(*line)))),
    ])?;
    Ok(Arc::new(Tables(vec![("lines", lines)])))
}

/// UTF-8, UTF-16 with a byte order mark, else the encoding of Chinese Windows.
fn decoded(bytes: &[u8]) -> String {
    if let Some((encoding, _)) = encoding_rs::Encoding::for_bom(bytes) {
        return encoding.decode(bytes).0.into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => encoding_rs::GB18030.decode_without_bom_handling(bytes).0.into_owned(),
    }
}

fn text<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn whole(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

fn table<const N: usize>(columns: [(&'static str, ArrayRef); N]) -> Result<Arc<TableData>, Error> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))?;
    Ok(Arc::new(TableData { schema: batch.schema(), batches: vec![batch] }))
}
