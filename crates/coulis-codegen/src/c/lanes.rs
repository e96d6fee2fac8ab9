//! Vectors lane by lane, for dialects whose machine has no vector arithmetic.
//!
//! A vector expression is as many scalar expressions as it has lanes. What a vector statement reads or writes
//! contiguously is one access of up to 16 bytes where the address is shown to be a multiple of that size: a word is
//! read before the statement, and its elements are known under the scalar loads of the lanes; what only asks whether bytes
//! of it are zero is known too (`flags`). Sums of `f32` and extrema of 16-bit floats are written as pairs, for machines that
//! compute two at once.

use coulis_ir::{BinaryOp, Buffer, DType, Expr, Intrinsic, MemScope, Node, Var};

use coulis_ir::hash::Seen;

use crate::EmitError;
use crate::c::by_twos::is_storage_byte;
use crate::c::code::{Code, Prec};
use crate::c::exact::is_of_exact;
use crate::c::flags::choices;
use crate::c::helper::{Helper, Needs as _};
use crate::c::scalar::{is_plain, is_storage_float};
use crate::c::style::is_enclosed;
use crate::c::types::{CTy, VTy};
use crate::c::value::Val;
use crate::c::{Walker, index};
use crate::dialect::{DialectKind, Word};

/// Bytes of the widest access.
const WORD_BYTES: u32 = 16;
/// Bytes that are copied into shared memory past the registers at a time. Source: PTX ISA, cp.async.
const COPIED_BYTES: [u32; 3] = [4, 8, 16];

impl Walker<'_> {
    /// A vector store.
    pub(super) fn store_lanes(&mut self, buffer: &Buffer, at: &Expr, value: &Expr) -> Result<(), EmitError> {
        self.f.memo.push(Default::default());
        let result = self.store_lanes_here(buffer, at, value);
        self.f.memo.pop();
        result
    }

    fn store_lanes_here(&mut self, buffer: &Buffer, at: &Expr, value: &Expr) -> Result<(), EmitError> {
        if self.copy_flags(buffer, at, value)? || self.copy_words(buffer, at, value)? {
            return Ok(());
        }
        self.settle_copies(buffer)?;
        self.read_words(value)?;
        self.name_pairs(value)?;
        let lanes = at.lanes();
        let mut codes = Vec::new();
        for lane in 0..lanes {
            let scalar = self.lane(value, lane);
            codes.push(self.code(&scalar)?);
        }
        // Lanes are stored one after another: what a later one reads must not have been overwritten.
        if self.reads_elsewhere(value, buffer, at) {
            let ty = VTy::scalar(CTy::carrier(buffer.dtype));
            codes = codes.iter().map(|code| self.declare(ty, code)).collect();
        }
        let words = contiguous(at).and_then(|base| Some((self.word(buffer, &base, lanes)?, base)));
        let Some(((word, width), base)) = words else {
            for (lane, code) in codes.iter().enumerate() {
                let place = self.lane(at, lane as u32);
                let place = self.place(&place)?;
                self.store_element(buffer, &place, code)?;
            }
            return Ok(());
        };
        for (chunk, codes) in codes.chunks(width as usize).enumerate() {
            let address = self.word_address(buffer, &base, chunk as u32 * width, word)?;
            let made = self.packed(buffer.dtype, word, codes)?;
            self.f.lines.statement(format_args!("{address} = {made}"));
        }
        Ok(())
    }

    /// Has words of memory that is only read copied into shared memory while the thread goes on, where a remark says so; whether they
    /// are.
    fn copy_words(&mut self, buffer: &Buffer, at: &Expr, value: &Expr) -> Result<bool, EmitError> {
        let is_shared = matches!(buffer.scope, MemScope::Shared | MemScope::SharedDyn);
        let Node::Load(source, indices) = value.node() else { return Ok(false) };
        let ([from], Some(to)) = (indices.as_slice(), contiguous(at)) else { return Ok(false) };
        let is_read = source.dtype == buffer.dtype && self.f.only_read.contains(&source.data.id());
        let Some(from) = contiguous(from).filter(|_| self.f.copies.is_some() && is_shared && is_read) else {
            return Ok(false);
        };
        let (lanes, bytes) = (at.lanes(), CTy::memory(buffer.dtype).bytes());
        let [Some((_, width)), Some((_, of_source))] =
            [self.word(buffer, &to, lanes), self.word(source, &from, lanes)]
        else {
            return Ok(false);
        };
        if width != of_source || !COPIED_BYTES.contains(&(width * bytes)) {
            return Ok(false);
        }
        self.f.copies = Some(true);
        let name = self.defs.helper(Helper::CopyWord(width * bytes))?;
        for first in (0..lanes).step_by(width as usize) {
            let (to, from) = (self.word_place(buffer, &to, first)?, self.word_place(source, &from, first)?);
            self.f.lines.statement(Code::call(&name, &[&to, &from]).text.as_str());
        }
        Ok(true)
    }

    /// Waits for copies that may be under way to the memory of a store that is none of them.
    pub(super) fn settle_copies(&mut self, buffer: &Buffer) -> Result<(), EmitError> {
        if self.f.copies.is_some() && matches!(buffer.scope, MemScope::Shared | MemScope::SharedDyn) {
            let wait = self.defs.helper(Helper::WaitForCopies)?;
            self.f.lines.statement(&format!("{wait}()"));
        }
        Ok(())
    }

    /// One scalar variable a lane of a vector variable.
    pub(super) fn bind_lanes(&mut self, var: &Var, value: &Expr) -> Result<(), EmitError> {
        self.f.memo.push(Default::default());
        let result = self.bind_lanes_here(var, value);
        self.f.memo.pop();
        result
    }

    fn bind_lanes_here(&mut self, var: &Var, value: &Expr) -> Result<(), EmitError> {
        self.read_words(value)?;
        self.name_pairs(value)?;
        let is_data = self.holds_data(value);
        let mut vars = Vec::new();
        for lane in 0..value.lanes() {
            let scalar = self.lane(value, lane);
            let code = self.code(&scalar)?;
            let lane_var = Var::new(var.name(), value.dtype());
            if is_data {
                self.f.data_vars.insert(lane_var.id());
            }
            self.bind(&lane_var, Val::scalar(CTy::carrier(value.dtype()), code))?;
            vars.push(lane_var);
        }
        self.f.lane_vars.insert(var.id(), vars);
        self.f.lane_memo.clear();
        Ok(())
    }

    /// The scalar expression of one lane.
    pub(super) fn lane(&mut self, expr: &Expr, lane: u32) -> Expr {
        if expr.lanes() == 1 {
            return expr.clone();
        }
        if !expr.may_be_shared() {
            return self.new_lane(expr, lane);
        }
        let key = (expr.clone(), lane);
        if let Some(known) = self.f.lane_memo.get(&key) {
            return known.clone();
        }
        let scalar = self.new_lane(expr, lane);
        self.f.lane_memo.insert(key, scalar.clone());
        scalar
    }

    fn new_lane(&mut self, expr: &Expr, lane: u32) -> Expr {
        match expr.node() {
            Node::Int(_) | Node::Float(_) => expr.clone(),
            Node::Var(var) => {
                let of = self.f.lane_vars.get(&var.id()).and_then(|vars| vars.get(lane as usize));
                of.map_or_else(|| expr.clone(), |var| var.expr())
            }
            Node::Broadcast(a) => a.clone(),
            Node::Ramp(base, stride) => {
                let scale = Expr::int_of(i128::from(lane), base.dtype());
                let distance = index::fold_binary(BinaryOp::Mul, stride.clone(), scale);
                index::fold_binary(BinaryOp::Add, base.clone(), distance)
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.lane(a, lane), self.lane(b, lane));
                index::fold_binary(*op, a, b)
            }
            Node::Not(a) => self.lane(a, lane).logical_not(),
            Node::Cast(a) => self.lane(a, lane).cast(expr.dtype()),
            Node::Select(c, a, b) => Expr::select(self.lane(c, lane), self.lane(a, lane), self.lane(b, lane)),
            Node::IfThenElse(c, a, b) => {
                Expr::if_then_else(self.lane(c, lane), self.lane(a, lane), self.lane(b, lane))
            }
            Node::Call(intrinsic, args) => {
                Expr::call(*intrinsic, args.iter().map(|a| self.lane(a, lane)).collect())
            }
            Node::Load(buffer, indices) => {
                Expr::load(buffer.clone(), indices.iter().map(|at| self.lane(at, lane)).collect())
            }
            Node::Let(var, value, body) => {
                let value = self.lane(value, lane);
                let lane_var = Var::new(var.name(), value.dtype());
                let shown = vec![lane_var.clone(); expr.lanes() as usize];
                let outer = self.f.lane_vars.insert(var.id(), shown);
                let memo = std::mem::take(&mut self.f.lane_memo);
                let body = self.lane(body, lane);
                self.f.lane_memo = memo;
                match outer {
                    Some(outer) => self.f.lane_vars.insert(var.id(), outer),
                    None => self.f.lane_vars.remove(&var.id()),
                };
                Expr::let_in(lane_var, value, body)
            }
        }
    }

    /// The word by which that many elements from `base` on are accessed, and how many it holds.
    pub(super) fn word(&mut self, buffer: &Buffer, base: &Expr, lanes: u32) -> Option<(Word, u32)> {
        let DialectKind::Gpu(gpu) = self.dialect.kind() else { return None };
        if buffer.scope == MemScope::Local || buffer.scope == MemScope::Warp || !base.dtype().is_int() {
            return None;
        }
        let memory = CTy::memory(buffer.dtype);
        let mut width = lanes & lanes.wrapping_neg();
        width = width.min(WORD_BYTES / memory.bytes());
        while width > 1 {
            let multiple = Expr::int_of(i128::from(width), base.dtype());
            let rest = base.clone().floormod(multiple).equal(Expr::int_of(0, base.dtype()));
            if let Some(word) = gpu.word(memory, width)
                && self.facts.analyzer().can_prove(&rest)
            {
                let wanted = self.alignments.entry(buffer.data.id()).or_insert(1);
                *wanted = (*wanted).max(width * memory.bytes());
                return Some((word, width));
            }
            width /= 2;
        }
        None
    }

    /// `A + (base + first)`.
    fn word_place(&mut self, buffer: &Buffer, base: &Expr, first: u32) -> Result<Code, EmitError> {
        let first = Expr::int_of(i128::from(first), base.dtype());
        let at = self.place(&index::fold_binary(BinaryOp::Add, base.clone(), first))?;
        Ok(self.style().infix("+", Prec::Sum, &Code::primary(&*self.base(buffer)?), &at))
    }

    /// `*(uint4*)(A + (base + first))`.
    pub(super) fn word_address(
        &mut self,
        buffer: &Buffer,
        base: &Expr,
        first: u32,
        word: Word,
    ) -> Result<String, EmitError> {
        let address = self.word_place(buffer, base, first)?;
        Ok(format!("*({}*){}", word.name, address.text))
    }

    /// The same as a value: of memory that is only read, a word that passes the caches where a remark on the loop says so, if not all
    /// blocks read the same.
    pub(super) fn word_read(
        &mut self,
        buffer: &Buffer,
        base: &Expr,
        first: u32,
        word: Word,
    ) -> Result<String, EmitError> {
        let may_pass = self.f.streams && self.f.only_read.contains(&buffer.data.id());
        if !may_pass || !self.is_of_block(base) {
            return self.word_address(buffer, base, first, word);
        }
        let address = self.word_place(buffer, base, first)?;
        let name = self.defs.helper(Helper::Passing(word.field, word.fields))?;
        Ok(Code::call(&name, &[&Code::primary(format!("(const {}*){}", word.name, address.text))]).text)
    }

    /// Reads what the value reads contiguously, each word once.
    fn read_words(&mut self, value: &Expr) -> Result<(), EmitError> {
        let mut loads = Vec::new();
        unconditional(value, &mut |e| {
            if matches!(e.node(), Node::Load(..)) {
                loads.push(e.clone());
            }
        });
        let choices = choices(value);
        for load in loads {
            let Node::Load(buffer, indices) = load.node() else { continue };
            let [at] = indices.as_slice() else { continue };
            let Some(base) = contiguous(at) else { continue };
            let Some((word, width)) = self.word(buffer, &base, at.lanes()) else {
                self.read_by_twos(&load, buffer)?;
                continue;
            };
            for first in (0..at.lanes()).step_by(width as usize) {
                let source = self.word_read(buffer, &base, first, word)?;
                let name = self.namer.fresh(&format!("{}_word", buffer.name));
                self.f.lines.statement(format_args!("{} {name} = {source}", word.name));
                for (element, code) in (0..).zip(self.unpacked_all(buffer.dtype, word, &name, width)?) {
                    let scalar = self.lane(&load, first + element);
                    self.remember(scalar, CTy::carrier(buffer.dtype), code);
                    for choice in choices.iter().filter(|choice| choice.element == load) {
                        self.choose(choice, first + element, word, &name, element)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn remember(&mut self, scalar: Expr, ty: CTy, code: Code) {
        if let Some(table) = self.f.memo.last_mut() {
            table.insert(scalar, Val::scalar(ty, code));
        }
    }

    /// Whether the value of the expression is at hand.
    pub(super) fn is_remembered(&self, scalar: &Expr) -> bool {
        self.f.memo.iter().any(|table| table.contains_key(scalar))
    }

    /// An element of a word, widened to its carrier.
    pub(super) fn unpacked(
        &mut self,
        dtype: DType,
        word: Word,
        name: &str,
        element: u32,
    ) -> Result<Code, EmitError> {
        let memory = CTy::memory(dtype);
        let per_field = word.field.bytes() / memory.bytes();
        let field = word.part(name, element / per_field);
        if per_field == 1 {
            return Ok(field);
        }
        if is_byte(dtype) {
            let name = self.defs.helper(Helper::Byte(memory, element % per_field))?;
            return Ok(Code::call(&name, &[&field]));
        }
        let shift = element % per_field * 8 * memory.bytes();
        let shifted = match shift {
            0 => field,
            _ => self.style().infix(">>", Prec::Shift, &field, &Code::primary(shift.to_string())),
        };
        let bits = self.cast(memory, &shifted);
        if is_plain(dtype) { Ok(bits) } else { self.widened(dtype, &bits) }
    }

    /// The word of those elements.
    fn packed(&mut self, dtype: DType, word: Word, codes: &[Code]) -> Result<String, EmitError> {
        let memory = CTy::memory(dtype);
        let per_field = (word.field.bytes() / memory.bytes()) as usize;
        let mut fields = Vec::new();
        for group in codes.chunks(per_field) {
            if per_field == 1 {
                fields.push(group[0].text.clone());
                continue;
            }
            if is_byte(dtype)
                && let Some(whole) = whole_of_bytes(memory, group)
            {
                fields.push(whole.text);
                continue;
            }
            let mut field: Option<Code> = None;
            let several = if is_storage_byte(dtype) || are_narrowed(dtype, group) { 2 } else { 1 };
            for (element, codes) in group.chunks(several).enumerate() {
                let wide = match codes {
                    [a, b] => {
                        let bits = self.bits_of_two(dtype, a, b)?;
                        self.cast(word.field, &bits)
                    }
                    [one, ..] => {
                        let bits = if is_plain(dtype) { one.clone() } else { self.bits(dtype, one)? };
                        self.cast(word.field, &self.cast(CTy::unsigned(memory.bytes()), &bits))
                    }
                    [] => continue,
                };
                let shift = Code::primary(((element * several) as u32 * 8 * memory.bytes()).to_string());
                field = Some(match field {
                    None => wide,
                    Some(low) => {
                        let high = self.style().infix("<<", Prec::Shift, &wide, &shift);
                        self.style().infix("|", Prec::BitOr, &low, &high)
                    }
                });
            }
            fields.extend(field.map(|code| code.text));
        }
        Ok(match word.fields {
            1 => fields.join(""),
            _ => format!("{}({})", word.make, fields.join(", ")),
        })
    }

    /// The `f32` (or bool) of an element as it stands in memory.
    pub(super) fn widened(&mut self, dtype: DType, bits: &Code) -> Result<Code, EmitError> {
        if dtype == DType::Bool {
            return Ok(self.style().infix("!=", Prec::Equality, bits, &Code::primary("0")));
        }
        Ok(Code::call(&self.defs.helper(Helper::Widen(dtype))?, &[bits]))
    }

    /// An element as it stands in memory.
    pub(super) fn bits(&mut self, dtype: DType, code: &Code) -> Result<Code, EmitError> {
        if !is_storage_float(dtype) {
            return Ok(code.clone());
        }
        // Bits that were only widened stand as they were, and what is rounded here need not be rounded before.
        if let Some(bits) = argument_of(&Helper::Widen(dtype).name(), code).or_else(|| self.bits_of_one(code))
        {
            return Ok(bits);
        }
        Ok(Code::call(&self.defs.helper(Helper::Narrow(dtype))?, &[&unrounded(dtype, code)]))
    }

    /// Names what the machine computes of two lanes at a time: sums of `f32`, extrema of 16-bit floats.
    fn name_pairs(&mut self, value: &Expr) -> Result<(), EmitError> {
        let mut found = Vec::new();
        unconditional(value, &mut |e| {
            if Pair::of(e).is_some() && e.lanes() % 2 == 0 {
                found.push(e.clone());
            }
        });
        // Operands first.
        for of in found.into_iter().rev() {
            let Some(Pair { helper, operands: [a, b] }) = Pair::of(&of) else { continue };
            let Some(word) = self.pair_word(of.dtype()) else { continue };
            let name = self.defs.helper(helper)?;
            for lane in (0..of.lanes()).step_by(2) {
                let pair = |walker: &mut Self, operand: &Expr| -> Result<String, EmitError> {
                    let (x, y) = (walker.lane(operand, lane), walker.lane(operand, lane + 1));
                    let codes = [walker.code(&x)?, walker.code(&y)?];
                    walker.packed(of.dtype(), word, &codes)
                };
                let (x, y) = (pair(self, a)?, pair(self, b)?);
                let result = self.namer.fresh("pair");
                self.f.lines.statement(format_args!("{} {result} = {name}({x}, {y})", word.name));
                for half in 0..2 {
                    let code = self.unpacked(of.dtype(), word, &result, half)?;
                    let scalar = self.lane(&of, lane + half);
                    self.remember(scalar, CTy::F32, code);
                }
            }
        }
        Ok(())
    }

    /// The word of two lanes.
    pub(super) fn pair_word(&self, dtype: DType) -> Option<Word> {
        let DialectKind::Gpu(gpu) = self.dialect.kind() else { return None };
        gpu.word(CTy::memory(dtype), 2)
    }
}

/// What the machine computes of two lanes at a time.
struct Pair<'e> {
    helper: Helper,
    operands: [&'e Expr; 2],
}

impl Pair<'_> {
    fn of(expr: &Expr) -> Option<Pair<'_>> {
        match (expr.node(), expr.dtype()) {
            (Node::Binary(BinaryOp::Add, a, b), DType::F32) if !is_of_exact(BinaryOp::Add, a, b) => {
                Some(Pair { helper: Helper::AddPair { ftz: false }, operands: [a, b] })
            }
            (Node::Call(Intrinsic::AddFtz, args), DType::F32) => {
                Some(Pair { helper: Helper::AddPair { ftz: true }, operands: [args.first()?, args.get(1)?] })
            }
            (Node::Call(of, args), dtype @ (DType::F16 | DType::BF16)) => match (of, &args[..]) {
                (Intrinsic::Max3 | Intrinsic::Min3, [a, b, c]) if b == c => {
                    Some(Pair { helper: Helper::ExtremumPair(*of, dtype), operands: [a, b] })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The first element of neighbouring ones.
pub(super) fn contiguous(at: &Expr) -> Option<Expr> {
    let (base, stride) = index::as_ramp(at)?;
    (index::constant(&stride) == Some(1)).then_some(base)
}

/// The argument of a text that is one call of that function of one argument.
fn argument_of(function: &str, code: &Code) -> Option<Code> {
    let rest = code.text.strip_prefix(function)?;
    let inside = rest.strip_prefix('(')?.strip_suffix(')')?;
    is_enclosed(rest).then(|| Code::primary(inside))
}

/// What a value was before it was rounded to a type that lives in memory only.
pub(super) fn unrounded(dtype: DType, code: &Code) -> Code {
    let rounded = Helper::Round(VTy::scalar(CTy::F32), dtype).name();
    argument_of(&rounded, code).unwrap_or_else(|| code.clone())
}

/// Whether two values that share a field of a word are both narrowed to 16 bits, which one operation does.
fn are_narrowed(dtype: DType, group: &[Code]) -> bool {
    let widen = Helper::Widen(dtype).name();
    let is_narrowed = |code: &Code| argument_of(&widen, code).is_none();
    is_storage_float(dtype) && dtype.bytes() == 2 && group.len() == 2 && group.iter().all(is_narrowed)
}

/// Whether elements are integers of one byte, which a field of a word holds four of.
pub(super) fn is_byte(dtype: DType) -> bool {
    is_plain(dtype) && dtype.bytes() == 1
}

/// The field whose bytes these are, in order.
fn whole_of_bytes(memory: CTy, bytes: &[Code]) -> Option<Code> {
    let of = |(byte, code): (usize, &Code)| argument_of(&Helper::Byte(memory, byte as u32).name(), code);
    let mut fields = bytes.iter().enumerate().map(of);
    let first = fields.next()??;
    fields.all(|field| field.as_ref() == Some(&first)).then_some(first)
}

/// The vector parts of an expression that are evaluated whatever happens, outermost first.
pub(super) fn unconditional<'e>(expr: &'e Expr, found: &mut impl FnMut(&'e Expr)) {
    fn go<'e>(expr: &'e Expr, found: &mut impl FnMut(&'e Expr), seen: &mut Seen<&'e Expr>) {
        if expr.lanes() == 1 || expr.may_be_shared() && !seen.insert(expr) {
            return;
        }
        found(expr);
        match expr.node() {
            Node::IfThenElse(..) | Node::Let(..) | Node::Load(..) => {}
            _ => expr.each_child(|child| go(child, found, seen)),
        }
    }
    go(expr, found, &mut Seen::default());
}
