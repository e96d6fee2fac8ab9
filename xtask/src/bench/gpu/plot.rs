//! The plot of a GPU: for each workload the share of the floor of coulis, as a bar, and of each library, as a mark.
//!
//! Plain SVG. Its colours follow the reader's choice of light or dark; marks differ in shape as well as in colour.

use std::fmt::Write;

use super::record::{Record, Row};
use super::{COULIS, PEERS};

/// Shares beyond this are drawn there.
const MOST: f64 = 1.1;
const LEFT: f64 = 190.0;
const WIDTH: f64 = 620.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 70.0;
const STEP: f64 = 20.0;

const STYLE: &str = "\
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .paper { fill: #ffffff } .grid { stroke: #d0d7de } .one { stroke: #57606a }
  .coulis { fill: #9ec5f3 } .mark { stroke: #ffffff; stroke-width: 0.7 }
  .torch { fill: #d55e00 } .cupy { fill: #00795a } .jax { fill: #a0308c } .cub { fill: #111111 } .compile { fill: #b38600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .paper { fill: #0d1117 } .grid { stroke: #30363d } .one { stroke: #9198a1 }
    .coulis { fill: #1f5a9e } .mark { stroke: #0d1117 }
    .torch { fill: #ff8c42 } .cupy { fill: #2fd0a0 } .jax { fill: #f08ad8 } .cub { fill: #f0f0f0 } .compile { fill: #f0c040 }
  }
";

/// The plot as a file's text.
pub fn svg(record: &Record) -> String {
    let rows: Vec<(&Row, f64)> =
        record.rows().iter().filter_map(|row| Some((row, row.number(COULIS, "floor_ms")?))).collect();
    let bottom = TOP + STEP * rows.len() as f64;
    let (width, height) = (LEFT + WIDTH + RIGHT, bottom + 30.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"share of the floor by workload\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    let title = format!("Share of the rate of a copy, {} (right is faster)", record.device().0);
    let _ = writeln!(svg, "<text x=\"12\" y=\"22\">{}</text>", escaped(&title));
    legend(&mut svg);
    for tenth in 0..=11 {
        let share = f64::from(tenth) / 10.0;
        let (x, class) = (x_of(share), if tenth == 10 { "one" } else { "grid" });
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
        );
        if tenth % 2 == 0 {
            let y = bottom + 18.0;
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{share:.1}</text>");
        }
    }
    for (nth, (row, floor)) in rows.iter().enumerate() {
        let middle = TOP + STEP * (nth as f64 + 0.5);
        let (x, y) = (LEFT - 8.0, middle + 4.0);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text>", escaped(row.id()));
        if let Some(ms) = row.ms(COULIS) {
            let share = floor / ms;
            let (y, width, height) = (middle - 7.0, x_of(share) - LEFT, 14.0);
            let _ = writeln!(
                svg,
                "<rect class=\"coulis\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\">{}</rect>",
                hint(COULIS, share, ms)
            );
        }
        for name in PEERS {
            if let Some(ms) = row.ms(name) {
                mark(&mut svg, name, x_of(floor / ms), middle, &hint(name, floor / ms, ms));
            }
        }
    }
    svg + "</svg>\n"
}

fn x_of(share: f64) -> f64 {
    LEFT + WIDTH * share.clamp(0.0, MOST) / MOST
}

/// What is shown where the pointer rests.
fn hint(name: &str, share: f64, ms: f64) -> String {
    format!("<title>{name}: {share:.3} of the floor, {ms:.4} ms</title>")
}

fn legend(svg: &mut String) {
    let _ = writeln!(svg, "<rect class=\"coulis\" x=\"{LEFT}\" y=\"38\" width=\"24\" height=\"14\"/>");
    let _ = writeln!(svg, "<text x=\"{}\" y=\"49\">{COULIS}</text>", LEFT + 30.0);
    for (nth, name) in PEERS.into_iter().enumerate() {
        let x = LEFT + 100.0 + 90.0 * nth as f64;
        mark(svg, name, x, 45.0, "");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"49\">{name}</text>", x + 10.0);
    }
}

/// A mark of its own shape around a point.
fn mark(svg: &mut String, name: &str, x: f64, y: f64, inside: &str) {
    let corners: &[(f64, f64)] = match name {
        "torch" => &[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
        "cupy" => &[(0.0, -6.5), (6.0, 4.0), (-6.0, 4.0)],
        "jax" => &[(0.0, -6.5), (6.5, 0.0), (0.0, 6.5), (-6.5, 0.0)],
        "cub" => &[(0.0, 6.5), (6.0, -4.0), (-6.0, -4.0)],
        _ => {
            let _ = writeln!(
                svg,
                "<circle class=\"mark {name}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\">{inside}</circle>"
            );
            return;
        }
    };
    let points: Vec<String> = corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
    let points = points.join(" ");
    let _ = writeln!(svg, "<polygon class=\"mark {name}\" points=\"{points}\">{inside}</polygon>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn every_time_has_a_mark_at_its_share_and_far_ones_stay_inside() {
        let record = record(&[
            ("a<b", 2.0, 1.0, &[("torch", 1.0), ("cub", 0.1)]),
            ("other", 1.0, 1.0, &[("compile", 4.0)]),
        ]);
        let svg = svg(&record);
        assert!(svg.contains(">a&lt;b</text>"));
        assert!(
            svg.contains(&format!("width=\"{:.1}\" height=\"14\"><title>coulis: 0.500", WIDTH * 0.5 / MOST))
        );
        assert!(svg.contains(&format!("cx=\"{:.1}\"", x_of(0.25))));
        // One in the legend and one each in the plot.
        for (name, n) in [("torch", 2), ("cub", 2), ("compile", 2), ("cupy", 1)] {
            assert_eq!(svg.matches(&format!("\"mark {name}\"")).count(), n, "{name}");
        }
        assert_eq!(x_of(10.0), LEFT + WIDTH);
        for tag in ["svg", "text", "polygon", "circle", "title", "style"] {
            let opened = svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
