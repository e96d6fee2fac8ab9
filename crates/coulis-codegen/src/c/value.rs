//! Values in text: one fragment for a scalar, one a part for a vector; and how parts change shape.

use coulis_ir::Buffer;
use smallvec::{SmallVec, smallvec};

use crate::EmitError;
use crate::c::Walker;
use crate::c::code::{Code, Prec};
use crate::c::helper::{Helper, Needs as _};
use crate::c::types::{CTy, VTy, part_lanes};

/// A value.
#[derive(Clone, Debug)]
pub struct Val {
    /// Type of each lane.
    pub ty: CTy,
    /// Parts in order; one of 0 lanes for a scalar.
    pub parts: Parts,
    /// The scalar, where it is known that all lanes hold it (a scalar bool for masks).
    pub uniform: Option<Code>,
}

/// Most values are scalars, or vectors of one part.
pub type Parts = SmallVec<[Part; 1]>;

/// Consecutive lanes.
#[derive(Clone, Debug)]
pub struct Part {
    /// How many; 0 for a scalar.
    pub lanes: u32,
    /// Text.
    pub code: Code,
}

impl Val {
    /// A scalar.
    pub fn scalar(ty: CTy, code: Code) -> Val {
        Val { ty, parts: smallvec![Part { lanes: 0, code }], uniform: None }
    }

    /// The text of a scalar (of a vector's first part).
    pub fn code(&self) -> &Code {
        &self.parts[0].code
    }

    /// The same, of a value that is not used any more.
    pub fn into_code(mut self) -> Code {
        self.parts.swap_remove(0).code
    }

    /// The type of a part.
    pub fn part_ty(&self, part: &Part) -> VTy {
        VTy { ty: self.ty, lanes: part.lanes }
    }

    /// A vector's lanes in all.
    pub fn lanes(&self) -> u32 {
        self.parts.iter().map(|p| p.lanes).sum()
    }
}

/// What one step of a conversion does to each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// C's conversion.
    Convert(CTy),
    /// The same, of 64-bit integers that are known to be short, to `f64`.
    Short,
    /// Truncation with saturation, to an integer of the same width.
    Saturate(CTy),
    /// Rounding to odd, into the next narrower format that holds it.
    Odd(CTy),
}

impl Step {
    fn target(self) -> CTy {
        match self {
            Step::Convert(ty) | Step::Saturate(ty) | Step::Odd(ty) => ty,
            Step::Short => CTy::F64,
        }
    }

    fn helper(self, from: VTy) -> Helper {
        match self {
            Step::Convert(ty) => Helper::Convert(from, ty),
            Step::Short => Helper::Short(from),
            Step::Saturate(ty) => Helper::Saturate(from, ty),
            Step::Odd(_) => Helper::Odd(from),
        }
    }
}

/// Whether pieces of a vector are converted faster if it is put into memory first, on machines that widen from memory. A register of
/// `f32` is halved to be converted to `f64`, which reads its operand from memory in one operation, while a half in a register is two
/// more for the port that moves lanes: 1.15 times the speed of sums of squares of 16-bit elements on Intel's cores, 0.96 to 0.99 of
/// that of columns and squares on AMD's (Zen 5).
fn is_faster_from_memory(piece: VTy, of: u32, step: Step) -> bool {
    piece.ty == CTy::F32 && (piece.lanes, of) == (8, 16) && step == Step::Convert(CTy::F64)
}

impl Walker<'_> {
    /// Each part through a helper of one argument that keeps the shape.
    pub fn map_parts(
        &mut self,
        val: &Val,
        ty: CTy,
        helper: impl Fn(VTy) -> Helper,
    ) -> Result<Val, EmitError> {
        let mut parts = Parts::new();
        for part in &val.parts {
            let name = self.defs.helper(helper(val.part_ty(part)))?;
            parts.push(Part { lanes: part.lanes, code: Code::call(&name, &[&part.code]) });
        }
        Ok(Val { ty, parts, uniform: None })
    }

    /// The parts of two values of the same shape through a helper of two arguments, which may give another type.
    pub fn zip_parts(
        &mut self,
        a: &Val,
        b: &Val,
        ty: CTy,
        combine: impl Fn(&mut Walker, VTy, &Code, &Code) -> Result<Code, EmitError>,
    ) -> Result<Val, EmitError> {
        let mut parts = Parts::new();
        for (x, y) in a.parts.iter().zip(&b.parts) {
            let code = combine(self, a.part_ty(x), &x.code, &y.code)?;
            parts.push(Part { lanes: x.lanes, code });
        }
        Ok(Val { ty, parts, uniform: None })
    }

    /// The scalar in every lane; `code` is evaluated once.
    pub fn splat(&mut self, ty: CTy, code: Code, lanes: u32) -> Result<Val, EmitError> {
        let widths = part_lanes(lanes, ty.bytes(), self.options.vector_bytes);
        let scalar = if ty.is_mask() { CTy::Bool } else { ty };
        let code = if widths.len() > 1 { self.simple(scalar, code) } else { code };
        let mut parts = Parts::new();
        for n in widths {
            let name = self.defs.helper(Helper::Splat(VTy::vector(ty, n)))?;
            parts.push(Part { lanes: n, code: Code::call(&name, &[&code]) });
        }
        Ok(Val { ty, parts, uniform: Some(code) })
    }

    /// A mask of lanes of `bytes` bytes, all of them the scalar bool.
    pub fn splat_mask(&mut self, cond: Code, bytes: u32, lanes: u32) -> Result<Val, EmitError> {
        self.splat(CTy::mask(bytes), cond, lanes)
    }

    /// The mask with lanes of `bytes` bytes.
    pub fn mask_as(&mut self, mask: &Val, bytes: u32) -> Result<Val, EmitError> {
        if mask.ty.bytes() == bytes {
            return Ok(mask.clone());
        }
        match &mask.uniform {
            Some(cond) => self.splat_mask(cond.clone(), bytes, mask.lanes()),
            None => self.step(mask, Step::Convert(CTy::mask(bytes))),
        }
    }

    /// One conversion of every lane; parts are split or joined where the width of lanes changes.
    pub fn step(&mut self, val: &Val, step: Step) -> Result<Val, EmitError> {
        let to = step.target();
        if val.ty == to && step == Step::Convert(to) {
            return Ok(val.clone());
        }
        let wanted = part_lanes(val.lanes(), to.bytes(), self.options.vector_bytes);
        let mut converted = Vec::new();
        let mut next = wanted.iter().copied();
        for part in &val.parts {
            let from = val.part_ty(part);
            let first =
                if to.bytes() > val.ty.bytes() { next.next().unwrap_or(part.lanes) } else { part.lanes };
            if first >= part.lanes {
                let name = self.defs.helper(step.helper(from))?;
                converted.push(Part { lanes: part.lanes, code: Code::call(&name, &[&part.code]) });
                continue;
            }
            // A wider type: this part becomes several.
            let piece = VTy { lanes: first, ..from };
            let kept = self.options.widens_from_memory
                && self.f.inline == 0
                && is_faster_from_memory(piece, part.lanes, step);
            let whole =
                if kept { self.kept(from, &part.code)? } else { self.simple_vector(from, part.code.clone()) };
            let name = self.defs.helper(step.helper(piece))?;
            for index in 0..part.lanes / first {
                if index > 0 {
                    next.next();
                }
                let cut = if kept {
                    Helper::Kept(piece, part.lanes, index)
                } else {
                    Helper::Piece(piece, part.lanes, index)
                };
                let cut = self.defs.helper(cut)?;
                let code = Code::call(&name, &[&Code::call(&cut, &[&whole])]);
                converted.push(Part { lanes: first, code });
            }
        }
        self.join(to, converted, &wanted)
    }

    /// Joins parts pairwise until they have the wanted lanes.
    fn join(&mut self, ty: CTy, parts: Vec<Part>, wanted: &[u32]) -> Result<Val, EmitError> {
        let mut joined = Vec::new();
        let mut rest = parts.into_iter();
        for &lanes in wanted {
            let mut group: Vec<Part> = Vec::new();
            while group.iter().map(|p| p.lanes).sum::<u32>() < lanes {
                match rest.next() {
                    Some(part) => group.push(part),
                    None => break,
                }
            }
            while group.len() > 1 {
                let mut halves = Vec::new();
                for pair in group.chunks(2) {
                    match pair {
                        [a, b] => {
                            let name = self.defs.helper(Helper::Concat(VTy { ty, lanes: a.lanes }))?;
                            let code = Code::call(&name, &[&a.code, &b.code]);
                            halves.push(Part { lanes: a.lanes + b.lanes, code });
                        }
                        _ => halves.extend(pair.iter().cloned()),
                    }
                }
                group = halves;
            }
            joined.append(&mut group);
        }
        Ok(Val { ty, parts: joined.into(), uniform: None })
    }

    /// `code` as text that may be repeated: itself where it is short and binds tightly, else a new name.
    pub fn simple(&mut self, ty: CTy, code: Code) -> Code {
        let repeatable = code.prec >= Prec::Unary && code.text.len() <= 16 && !code.text.contains('(');
        if repeatable || self.f.inline > 0 { code } else { self.declare(VTy::scalar(ty), &code) }
    }

    /// The same for a vector.
    pub fn simple_vector(&mut self, ty: VTy, code: Code) -> Code {
        let is_name = code.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name || self.f.inline > 0 { code } else { self.declare(ty, &code) }
    }

    /// Stores each element of a value at a place of its own, converted to the type that it is stored in with those beside it.
    pub fn store_converted(&mut self, buffer: &Buffer, places: &[Code], val: &Val) -> Result<(), EmitError> {
        let (base, memory) = (self.base(buffer)?, CTy::memory(buffer.dtype));
        let mut places = places.iter();
        for part in &val.parts {
            let (name, lanes) = (self.namer.fresh("t"), part.lanes);
            self.f.lines.statement(format_args!("{} {name}[{lanes}]", memory.name()));
            let store = self.defs.helper(Helper::Store(buffer.dtype, lanes))?;
            self.f.lines.statement(&Code::call(&store, &[&Code::primary(name.clone()), &part.code]).text);
            for (lane, place) in (&mut places).take(lanes as usize).enumerate() {
                self.f.lines.statement(format_args!("{base}[{}] = {name}[{lane}]", place.text));
            }
        }
        Ok(())
    }

    /// The address of a new variable of that value, which is in memory.
    fn kept(&mut self, ty: VTy, code: &Code) -> Result<Code, EmitError> {
        let keep = self.defs.helper(Helper::Keep(ty))?;
        let (name, spelled) = (self.namer.fresh("t"), self.spelled(ty));
        self.f.lines.statement(format_args!("{spelled} {name} = {}", code.text));
        let address = Code { text: format!("&{name}"), prec: Prec::Unary };
        self.f.lines.statement(&Code::call(&keep, &[&address]).text);
        Ok(address)
    }

    /// The name of the type of a variable.
    pub fn spelled(&mut self, ty: VTy) -> String {
        if ty.lanes > 0 {
            return self.defs.ty(ty);
        }
        self.dialect.type_name(self.dialect.held(ty.ty)).to_owned()
    }

    /// A new constant of that value.
    pub fn declare(&mut self, ty: VTy, code: &Code) -> Code {
        let name = self.namer.fresh("t");
        let spelled = self.spelled(ty);
        let constant = self.style().constant;
        self.f.lines.statement_of(&[constant, &spelled, " ", &name, " = ", &code.text]);
        Code::primary(name)
    }

    /// Gives every part a name.
    pub fn declare_val(&mut self, val: &Val) -> Val {
        let mut named = val.clone();
        let mut last: Option<(Part, Code)> = None;
        for part in &mut named.parts {
            let code = match &last {
                Some((same, name)) if same.lanes == part.lanes && same.code == part.code => name.clone(),
                _ => self.declare(VTy { ty: val.ty, lanes: part.lanes }, &part.code),
            };
            last = Some((part.clone(), code.clone()));
            part.code = code;
        }
        named
    }
}
