//! The forms of vector instructions: EVEX with 32 registers and masks, VEX with 16 registers.

use super::{Asm, Enc, Isa, Len, Mask, Rm, Vec_, enc};

/// Instructions whose VEX form has no width bit where their EVEX form has one: 64-bit elements in all lanes.
const fn is_narrow_in_vex(e: Enc) -> bool {
    e.map == 2 && e.op == 0x59
}

impl Asm {
    /// The length of a whole register.
    pub(in super::super) fn whole(&self) -> Len {
        match self.isa {
            Isa::Avx2 => Len::Y,
            Isa::Avx512 => Len::Z,
        }
    }

    /// `d = op(a, b)` in the lanes of `mask`, the others as they are or zero. Instructions of two operands take register
    /// 0 as `a`; stores take their source as `d`. The VEX form has no masks.
    #[allow(clippy::too_many_arguments, reason = "one instruction has so many parts")]
    pub(in super::super) fn vec(
        &mut self,
        e: Enc,
        len: Len,
        d: Vec_,
        a: Vec_,
        b: Rm,
        mask: Mask,
        zero: bool,
        imm: Option<u8>,
    ) {
        // Shifts by constants write their first operand.
        let shifts = e.map == 1 && (0x71..=0x73).contains(&e.op);
        let touches = |register: Vec_| d == register || b == Rm::Reg(register) || shifts && a == register;
        if self.loaded.is_some_and(|(register, ..)| touches(register)) {
            self.loaded = None;
        }
        match self.isa {
            Isa::Avx2 => {
                debug_assert!(mask == Mask(0) && len != Len::Z, "no VEX form: {e:?}");
                self.vex_form(e, len, d, a, b, imm);
            }
            Isa::Avx512 => self.evex_form(e, len, d, a, b, (mask, zero), imm),
        }
    }

    /// `d = op(a, b)` in all lanes.
    pub(in super::super) fn op(&mut self, e: Enc, len: Len, d: Vec_, a: Vec_, b: Rm) {
        self.vec(e, len, d, a, b, Mask(0), false, None);
    }

    /// The same with a constant of 8 bits.
    pub(in super::super) fn op_imm(&mut self, e: Enc, len: Len, d: Vec_, a: Vec_, b: Rm, imm: u8) {
        self.vec(e, len, d, a, b, Mask(0), false, Some(imm));
    }

    #[allow(clippy::too_many_arguments, reason = "one instruction has so many parts")]
    fn evex_form(
        &mut self,
        e: Enc,
        len: Len,
        d: Vec_,
        a: Vec_,
        b: Rm,
        (mask, zero): (Mask, bool),
        imm: Option<u8>,
    ) {
        let (x, base, broadcast) = match b {
            Rm::Reg(r) => (r.0 >> 4 & 1, r.0 >> 3 & 1, 0),
            Rm::Mem(mem, _) => (mem.index.map_or(0, |(index, _)| index.0 >> 3), mem.base.0 >> 3, 0),
            Rm::Pool(..) => (0, 0, 1),
            Rm::Table(..) => (0, 0, 0),
        };
        let not = |bit: u8| (bit & 1) ^ 1;
        self.byte(0x62);
        self.byte(not(d.0 >> 3) << 7 | not(x) << 6 | not(base) << 5 | not(d.0 >> 4) << 4 | e.map);
        self.byte(e.w << 7 | (!a.0 & 15) << 3 | 4 | e.pp);
        self.byte(u8::from(zero) << 7 | (len as u8) << 5 | broadcast << 4 | not(a.0 >> 4) << 3 | mask.0);
        self.byte(e.op);
        // Short distances count in what the instruction reads.
        let scale = if let Rm::Mem(_, bytes) = b { i32::from(bytes.max(1)) } else { 1 };
        self.vec_operand(d.0, b, scale, imm);
    }

    fn vex_form(&mut self, e: Enc, len: Len, d: Vec_, a: Vec_, b: Rm, imm: Option<u8>) {
        let (d, a) = (d.0 & 15, a.0 & 15);
        let (x, base) = match b {
            Rm::Reg(r) => (0, r.0 >> 3),
            Rm::Mem(mem, _) => (mem.index.map_or(0, |(index, _)| index.0 >> 3), mem.base.0 >> 3),
            Rm::Pool(..) | Rm::Table(..) => (0, 0),
        };
        let w = if is_narrow_in_vex(e) { 0 } else { e.w };
        self.vex_prefix(Enc { w, ..e }, len == Len::Y, d, a, (x, base));
        self.vec_operand(d, b, 1, imm);
    }

    /// `a ? on_true : on_false` by the first bit of each lane of `picked`; the VEX form.
    pub(in super::super) fn blend_by_lanes(
        &mut self,
        bytes: usize,
        len: Len,
        d: Vec_,
        on_false: Vec_,
        on_true: Rm,
        picked: Vec_,
    ) {
        let code = match bytes {
            4 => 0x4a,
            8 => 0x4b,
            _ => 0x4c,
        };
        self.op_imm(enc(1, 3, code, 0), len, d, on_false, on_true, (picked.0 & 15) << 4);
    }

    fn vec_operand(&mut self, reg: u8, b: Rm, scale: i32, imm: Option<u8>) {
        match b {
            Rm::Reg(r) => self.modrm(reg, r.0),
            Rm::Mem(mem, _) => self.modrm_mem(reg, mem, scale),
            Rm::Pool(offset, _) | Rm::Table(offset, _) => {
                self.byte((reg & 7) << 3 | 5);
                self.to_pool.push((self.bytes.len(), offset, u8::from(imm.is_some())));
                self.dword(0);
            }
        }
        if let Some(imm) = imm {
            self.byte(imm);
        }
    }

    /// An instruction on mask registers.
    pub(in super::super) fn mask(&mut self, e: Enc, long: bool, d: Mask, a: Mask, b: Mask, imm: Option<u8>) {
        self.vex_prefix(e, long, d.0, a.0, (0, b.0 >> 3));
        self.modrm(d.0, b.0);
        if let Some(imm) = imm {
            self.byte(imm);
        }
    }

    /// An instruction on a mask and a general register.
    pub(in super::super) fn mask_gpr(&mut self, e: Enc, d: u8, b: u8) {
        self.vex_prefix(e, false, d, 0, (0, b >> 3));
        self.modrm(d, b);
    }

    /// `x` and `base` are the high bits of an index and of what the rest of the operand is named by.
    fn vex_prefix(&mut self, e: Enc, long: bool, d: u8, a: u8, (x, base): (u8, u8)) {
        let not = |bit: u8| (bit & 1) ^ 1;
        self.byte(0xc4);
        self.byte(not(d >> 3) << 7 | not(x) << 6 | not(base) << 5 | e.map);
        self.byte(e.w << 7 | (!a & 15) << 3 | u8::from(long) << 2 | e.pp);
        self.byte(e.op);
    }
}
