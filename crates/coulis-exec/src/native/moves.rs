//! Vectors between memory and registers, and pieces of registers.

use super::asm::{Asm, Gpr, Isa, Len, Mask, Mem, R11, Rm, Vec_, enc};
use super::emit::Emitter;
use super::loops::POINTERS;
use super::vector::{LANES, LOAD, Loc, STORE, TEMP, TEMP_MASK};

/// A general register for pieces of one or two bytes.
pub(super) const SMALL: Gpr = R11;
/// The bytes of a piece that is no power of two.
const ODD: Mask = Mask(5);

/// Picks so many bytes of a register.
fn pick_bytes(asm: &mut Asm, bytes: usize) {
    asm.mov_imm(SMALL, (1 << bytes) - 1);
    asm.mask_gpr(enc(3, 1, 0x92, 1), ODD.0, SMALL.0);
}

/// Powers of two that a number of bytes below 16 is the sum of, largest first, and where each begins.
fn powers(bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    [8, 4, 2, 1].into_iter().filter(move |p| bytes & p != 0).map(move |p| (p, bytes & !(2 * p - 1)))
}

/// Loads so many bytes; the rest of the register is 0.
pub(super) fn enc_load(asm: &mut Asm, d: Vec_, mem: Mem, bytes: usize) {
    match bytes {
        _ if !bytes.is_power_of_two() => load_odd(asm, d, mem, bytes),
        1 | 2 => {
            asm.load(SMALL, mem, bytes);
            asm.op(enc(1, 1, 0x6e, 0), Len::X, d, Vec_(0), Rm::Reg(Vec_(SMALL.0)));
        }
        4 => asm.op(enc(1, 1, 0x6e, 0), Len::X, d, Vec_(0), Rm::Mem(mem, 4)),
        8 => asm.op(enc(2, 1, 0x7e, 1), Len::X, d, Vec_(0), Rm::Mem(mem, 8)),
        _ => {
            if asm.holds(d, mem, bytes) {
                return;
            }
            asm.op(LOAD, Len::of(bytes), d, Vec_(0), Rm::Mem(mem, bytes as u8));
            // Other registers are set anew for each operand.
            if POINTERS.contains(&mem.base) {
                asm.note_loaded(d, mem, bytes);
            }
        }
    }
}

fn load_odd(asm: &mut Asm, d: Vec_, mem: Mem, bytes: usize) {
    if asm.isa == Isa::Avx512 {
        pick_bytes(asm, bytes);
        let load = enc(3, 1, 0x6f, 0);
        return asm.vec(load, Len::of(bytes), d, Vec_(0), Rm::bytes_at(mem, bytes), ODD, true, None);
    }
    if bytes > 16 {
        enc_load(asm, LANES, mem.plus(16), bytes - 16);
        asm.op(LOAD, Len::X, d, Vec_(0), Rm::Mem(mem, 16));
        return asm.op_imm(enc(1, 3, 0x38, 0), Len::Y, d, d, Rm::Reg(LANES), 1);
    }
    for (size, at) in powers(bytes) {
        let from = mem.plus(at as i32);
        let insert = match size {
            _ if at == 0 => {
                enc_load(asm, d, from, size);
                continue;
            }
            4 => enc(1, 3, 0x22, 0),
            2 => enc(1, 1, 0xc4, 0),
            _ => enc(1, 3, 0x20, 0),
        };
        asm.op_imm(insert, Len::X, d, d, Rm::Mem(from, size as u8), (at / size) as u8);
    }
}

/// Stores so many bytes.
pub(super) fn enc_store(asm: &mut Asm, mem: Mem, a: Vec_, bytes: usize) {
    asm.forget_loaded();
    match bytes {
        _ if !bytes.is_power_of_two() => store_odd(asm, mem, a, bytes),
        1 | 2 => {
            asm.op(enc(1, 1, 0x7e, 0), Len::X, a, Vec_(0), Rm::Reg(Vec_(SMALL.0)));
            asm.store(mem, SMALL, bytes);
        }
        4 => asm.op(enc(1, 1, 0x7e, 0), Len::X, a, Vec_(0), Rm::Mem(mem, 4)),
        8 => asm.op(enc(1, 1, 0xd6, 1), Len::X, a, Vec_(0), Rm::Mem(mem, 8)),
        _ => asm.op(STORE, Len::of(bytes), a, Vec_(0), Rm::Mem(mem, bytes as u8)),
    }
}

fn store_odd(asm: &mut Asm, mem: Mem, a: Vec_, bytes: usize) {
    if asm.isa == Isa::Avx512 {
        pick_bytes(asm, bytes);
        let store = enc(3, 1, 0x7f, 0);
        return asm.vec(store, Len::of(bytes), a, Vec_(0), Rm::bytes_at(mem, bytes), ODD, false, None);
    }
    if bytes > 16 {
        asm.op(STORE, Len::X, a, Vec_(0), Rm::Mem(mem, 16));
        asm.op_imm(enc(1, 3, 0x39, 0), Len::Y, a, Vec_(0), Rm::Reg(LANES), 1);
        return enc_store(asm, mem.plus(16), LANES, bytes - 16);
    }
    for (size, at) in powers(bytes) {
        let into = mem.plus(at as i32);
        let extract = match size {
            _ if at == 0 => {
                enc_store(asm, into, a, size);
                continue;
            }
            4 => enc(1, 3, 0x16, 0),
            2 => enc(1, 3, 0x15, 0),
            _ => enc(1, 3, 0x14, 0),
        };
        asm.op_imm(extract, Len::X, a, Vec_(0), Rm::Mem(into, size as u8), (at / size) as u8);
    }
}

impl Emitter<'_> {
    /// Bytes of a vector register.
    pub(super) fn width(&self) -> usize {
        self.asm.isa.register_bytes()
    }

    /// A copy of a register.
    pub(super) fn copy(&mut self, d: Vec_, a: Vec_) {
        if d != a {
            let whole = self.asm.whole();
            self.asm.op(LOAD, whole, d, Vec_(0), Rm::Reg(a));
        }
    }

    /// A piece of an operand as a register or as memory; small pieces are loaded into `temp`.
    pub(super) fn input(&mut self, loc: &Loc, from: usize, bytes: usize, temp: Vec_) -> Rm {
        match loc {
            Loc::Mem(mem) => {
                let mem = mem.plus(from as i32);
                if bytes < 16 || !bytes.is_power_of_two() {
                    enc_load(&mut self.asm, temp, mem, bytes);
                    Rm::Reg(temp)
                } else {
                    // Other registers for passing values may be overwritten before this one is read.
                    let stays = |register: &Vec_| *register == temp || !TEMP.contains(register);
                    let holder = self.asm.holder(mem, bytes).filter(stays);
                    holder.map_or(Rm::Mem(mem, bytes as u8), Rm::Reg)
                }
            }
            Loc::Vectors(registers, total) => {
                let part = (*total).min(self.width());
                let register = Vec_(registers[from / part]);
                let away = from % part;
                self.extract(register, away, bytes, temp)
            }
            // Those are taken by `condition`.
            Loc::Mask(_) | Loc::Lanes { .. } => Rm::Reg(temp),
        }
    }

    fn extract(&mut self, register: Vec_, away: usize, bytes: usize, temp: Vec_) -> Rm {
        if away == 0 {
            return Rm::Reg(register);
        }
        let whole = self.asm.whole();
        let asm = &mut self.asm;
        if bytes > 16 {
            asm.op_imm(enc(1, 3, 0x3b, 1), whole, register, Vec_(0), Rm::Reg(temp), (away / 32) as u8);
            return Rm::Reg(temp);
        }
        let mut source = register;
        if away >= 16 {
            asm.op_imm(enc(1, 3, 0x39, 0), whole, register, Vec_(0), Rm::Reg(temp), (away / 16) as u8);
            source = temp;
        }
        if !away.is_multiple_of(16) {
            asm.op_imm(enc(1, 1, 0x73, 0), Len::X, Vec_(3), temp, Rm::Reg(source), (away % 16) as u8);
        }
        Rm::Reg(temp)
    }

    /// The register that a piece of the result is best computed in.
    pub(super) fn target(&self, d: &Loc, from: usize, bytes: usize) -> Vec_ {
        match d {
            Loc::Vectors(registers, total) => {
                let part = (*total).min(self.width());
                let is_whole = from.is_multiple_of(part) && bytes >= part.min(total - from);
                if is_whole { Vec_(registers[from / part]) } else { TEMP[0] }
            }
            Loc::Mem(_) | Loc::Mask(_) | Loc::Lanes { .. } => TEMP[0],
        }
    }

    /// Puts a piece of the result where it belongs.
    pub(super) fn output(&mut self, d: &Loc, from: usize, bytes: usize, value: Vec_) {
        match d {
            Loc::Mem(mem) => enc_store(&mut self.asm, mem.plus(from as i32), value, bytes),
            Loc::Vectors(registers, total) => {
                let part = (*total).min(self.width());
                let register = Vec_(registers[from / part]);
                let away = from % part;
                let is_rest_read = self.in_place && bytes < part.min(total - from);
                if away == 0 && !is_rest_read {
                    // Pieces come in order: the first one of a register may spoil the rest.
                    if register != value {
                        self.asm.op(LOAD, Len::of(bytes), register, Vec_(0), Rm::Reg(value));
                    }
                    return;
                }
                let (e, imm) = match bytes {
                    17.. => (enc(1, 3, 0x3a, 1), away / 32),
                    9..=16 => (enc(1, 3, 0x38, 0), away / 16),
                    _ => return self.insert_small(register, away, bytes, value, part),
                };
                self.asm.op_imm(e, Len::of(part), register, register, Rm::Reg(value), imm as u8);
            }
            Loc::Mask(_) | Loc::Lanes { .. } => {}
        }
    }

    /// Fills the lanes of a register from a piece of less than 16 bytes.
    fn insert_small(&mut self, register: Vec_, away: usize, bytes: usize, value: Vec_, part: usize) {
        // Every piece is spread over its whole register, and a mask of bytes picks its place.
        let spread = match bytes {
            5.. => enc(1, 2, 0x59, 1),
            3..=4 => enc(1, 2, 0x58, 0),
            2 => enc(1, 2, 0x79, 0),
            _ => enc(1, 2, 0x78, 0),
        };
        let picked = ((1u64 << bytes) - 1) << away;
        let len = Len::of(part);
        self.asm.op(spread, len, TEMP[6], Vec_(0), Rm::Reg(value));
        match self.asm.isa {
            Isa::Avx2 => {
                let table: Vec<u8> = (0..32).map(|i| if picked >> i & 1 == 1 { 0xff } else { 0 }).collect();
                let table = Rm::Table(self.asm.constant(&table), 32);
                self.asm.op(LOAD, Len::Y, LANES, Vec_(0), table);
                self.asm.blend_by_lanes(1, len, register, register, Rm::Reg(TEMP[6]), LANES);
            }
            Isa::Avx512 => {
                self.asm.mov_imm(SMALL, picked);
                self.asm.mask_gpr(enc(3, 1, 0x92, 1), TEMP_MASK.0, SMALL.0);
                let move_bytes = enc(3, 1, 0x6f, 0);
                let piece = Rm::Reg(TEMP[6]);
                self.asm.vec(move_bytes, len, register, Vec_(0), piece, TEMP_MASK, false, None);
            }
        }
    }

    pub(super) fn in_register(&mut self, rm: Rm, bytes: usize, temp: Vec_) -> Vec_ {
        match rm {
            Rm::Reg(register) => register,
            Rm::Mem(mem, _) => {
                enc_load(&mut self.asm, temp, mem, bytes);
                temp
            }
            Rm::Pool(..) | Rm::Table(..) => {
                self.asm.op(LOAD, Len::of(bytes), temp, Vec_(0), rm);
                temp
            }
        }
    }
}
