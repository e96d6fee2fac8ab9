//! An assembler of the few x86-64 instructions that native code consists of.
//!
//! Scalar instructions have a method each. Vector instructions are one [`Enc`] (prefix, map, opcode, width
//! bit) and one method for all lengths and operands, which writes the EVEX or the VEX form. Source: Intel 64
//! and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and the instruction pages.

mod vectors;

/// What vector instructions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// 16 registers of 32 bytes; comparisons give lanes of ones or zeros.
    Avx2,
    /// 32 registers of 64 bytes, and masks.
    Avx512,
}

impl Isa {
    /// Bytes of a vector register.
    pub(super) const fn register_bytes(self) -> usize {
        match self {
            Isa::Avx2 => 32,
            Isa::Avx512 => 64,
        }
    }

    /// Vector registers that variables may have; those above are for passing values.
    pub(super) const fn n_vectors(self) -> u8 {
        match self {
            Isa::Avx2 => 8,
            Isa::Avx512 => 25,
        }
    }
}

/// A general register by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gpr(pub u8);

pub(super) const RAX: Gpr = Gpr(0);
pub(super) const RCX: Gpr = Gpr(1);
pub(super) const RDX: Gpr = Gpr(2);
pub(super) const RBX: Gpr = Gpr(3);
pub(super) const RSP: Gpr = Gpr(4);
pub(super) const RBP: Gpr = Gpr(5);
pub(super) const RSI: Gpr = Gpr(6);
pub(super) const RDI: Gpr = Gpr(7);
pub(super) const R8: Gpr = Gpr(8);
pub(super) const R9: Gpr = Gpr(9);
pub(super) const R10: Gpr = Gpr(10);
pub(super) const R11: Gpr = Gpr(11);
pub(super) const R12: Gpr = Gpr(12);
pub(super) const R13: Gpr = Gpr(13);
pub(super) const R14: Gpr = Gpr(14);
pub(super) const R15: Gpr = Gpr(15);

/// A vector register of any length by its number. Where there are 16, those from 16 on are the same as those from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vec_(pub u8);

/// A mask register by its number; 0 stands for no mask where one is optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask(pub u8);

/// Memory at a register plus a constant, plus an index register times 1, 2, 4 or 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mem {
    pub base: Gpr,
    pub index: Option<(Gpr, u8)>,
    pub disp: i32,
}

impl Mem {
    pub(super) fn at(base: Gpr, disp: i32) -> Mem {
        Mem { base, index: None, disp }
    }

    pub(super) fn plus(self, bytes: i32) -> Mem {
        Mem { disp: self.disp + bytes, ..self }
    }
}

/// The operand of a vector instruction that may be memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rm {
    Reg(Vec_),
    /// Memory, of which the instruction reads or writes so many bytes.
    Mem(Mem, u8),
    /// One element of so many bytes of the pool of constants, in all lanes.
    Pool(u32, u8),
    /// A whole vector of the pool of constants.
    Table(u32, u8),
}

impl Rm {
    /// So many bytes of memory that an instruction with a mask of bytes accesses.
    pub(super) fn bytes_at(mem: Mem, bytes: usize) -> Rm {
        Rm::Mem(mem, 16 << Len::of(bytes) as u8)
    }
}

/// The length of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Len {
    X = 0,
    Y = 1,
    Z = 2,
}

impl Len {
    /// The shortest length that has so many bytes.
    pub(super) fn of(bytes: usize) -> Len {
        match bytes {
            0..=16 => Len::X,
            17..=32 => Len::Y,
            _ => Len::Z,
        }
    }
}

/// What tells a vector instruction from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Enc {
    /// 0, 1, 2, 3 for none, 66, F3, F2.
    pub pp: u8,
    /// 1, 2, 3 for 0F, 0F38, 0F3A.
    pub map: u8,
    pub op: u8,
    pub w: u8,
}

pub(super) const fn enc(pp: u8, map: u8, op: u8, w: u8) -> Enc {
    Enc { pp, map, op, w }
}

/// Conditions of jumps, as the processor numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cond {
    Overflow = 0,
    Below = 2,
    AboveEqual = 3,
    Equal = 4,
    NotEqual = 5,
    BelowEqual = 6,
    Above = 7,
    Less = 12,
    GreaterEqual = 13,
    LessEqual = 14,
    Greater = 15,
}

/// Two-operand integer instructions, by their opcodes with a register destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alu {
    Add = 0x03,
    Or = 0x0b,
    And = 0x23,
    Sub = 0x2b,
    Xor = 0x33,
    Cmp = 0x3b,
}

/// Shifts of a register by `cl`, by the digit of their opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    Left = 4,
    Right = 5,
    Arithmetic = 7,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(u32);

/// A place in code that one may go back to.
pub(super) struct Mark {
    bytes: usize,
    labels: usize,
    jumps: usize,
    to_pool: usize,
}

/// Code in the making.
pub(super) struct Asm {
    pub isa: Isa,
    pub bytes: Vec<u8>,
    labels: Vec<Option<usize>>,
    /// Places of 32-bit distances to labels.
    jumps: Vec<(usize, Label)>,
    /// Places of 32-bit distances to the pool, the offset in the pool, and the bytes that follow in the instruction.
    to_pool: Vec<(usize, u32, u8)>,
    pool: Vec<u8>,
    /// The last vector that was loaded, while its register and its memory are as they were.
    loaded: Option<(Vec_, Mem, usize)>,
}

impl Asm {
    pub(super) fn new(isa: Isa) -> Asm {
        Asm {
            isa,
            bytes: Vec::new(),
            labels: Vec::new(),
            jumps: Vec::new(),
            to_pool: Vec::new(),
            pool: Vec::new(),
            loaded: None,
        }
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    pub(super) fn bind(&mut self, label: Label) {
        self.loaded = None;
        self.labels[label.0 as usize] = Some(self.bytes.len());
    }

    /// Places of constants of so many bytes, of which equal ones are shared.
    pub(super) fn constant(&mut self, bytes: &[u8]) -> u32 {
        let size = bytes.len();
        let found = self.pool.chunks_exact(size).position(|chunk| chunk == bytes);
        let at = found.map_or_else(
            || {
                let at = self.pool.len().next_multiple_of(size);
                self.pool.resize(at, 0);
                self.pool.extend_from_slice(bytes);
                at
            },
            |n| n * size,
        );
        at as u32
    }

    /// The finished code with its constants behind it; offsets of labels stay as they are.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let pool = self.bytes.len().next_multiple_of(64);
        for (at, label) in &self.jumps {
            let target = self.labels[label.0 as usize].unwrap_or(*at + 4);
            let by = target as i64 - (*at as i64 + 4);
            self.bytes[*at..*at + 4].copy_from_slice(&(by as i32).to_le_bytes());
        }
        for (at, offset, behind) in &self.to_pool {
            let by = (pool + *offset as usize) as i64 - (*at as i64 + 4 + i64::from(*behind));
            self.bytes[*at..*at + 4].copy_from_slice(&(by as i32).to_le_bytes());
        }
        self.bytes.resize(pool, 0xcc);
        self.bytes.extend_from_slice(&self.pool);
        self.bytes
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            bytes: self.bytes.len(),
            labels: self.labels.len(),
            jumps: self.jumps.len(),
            to_pool: self.to_pool.len(),
        }
    }

    /// Forgets all code since the mark; constants stay.
    pub(super) fn back_to(&mut self, mark: &Mark) {
        self.bytes.truncate(mark.bytes);
        self.labels.truncate(mark.labels);
        self.jumps.truncate(mark.jumps);
        self.to_pool.truncate(mark.to_pool);
        self.loaded = None;
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn dword(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// The bytes that say what `reg` and memory take part; `scale` is what short distances count in.
    fn modrm_mem(&mut self, reg: u8, mem: Mem, scale: i32) {
        let low = mem.base.0 & 7;
        let short = mem.disp % scale == 0 && (-128..128).contains(&(mem.disp / scale));
        let mode = if mem.disp == 0 && low != 5 {
            0
        } else if short {
            1
        } else {
            2
        };
        match mem.index {
            Some((index, times)) => {
                self.byte(mode << 6 | (reg & 7) << 3 | 4);
                self.byte((times.ilog2() as u8) << 6 | (index.0 & 7) << 3 | low);
            }
            None if low == 4 => {
                self.byte(mode << 6 | (reg & 7) << 3 | 4);
                self.byte(0x24);
            }
            None => self.byte(mode << 6 | (reg & 7) << 3 | low),
        }
        match mode {
            1 => self.byte((mem.disp / scale) as u8),
            2 => self.dword(mem.disp),
            _ => {}
        }
    }

    fn rex_mem(&mut self, wide: bool, reg: u8, mem: Mem) {
        let index = mem.index.map_or(0, |(index, _)| index.0 >> 3);
        self.byte(0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | index << 1 | mem.base.0 >> 3);
    }

    fn rex(&mut self, wide: bool, reg: u8, rm: u8) {
        self.byte(0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | rm >> 3);
    }

    fn modrm(&mut self, reg: u8, rm: u8) {
        self.byte(0xc0 | (reg & 7) << 3 | (rm & 7));
    }

    // General registers. `bytes` is 4 or 8 unless said otherwise.

    pub(super) fn load(&mut self, d: Gpr, mem: Mem, bytes: usize) {
        match bytes {
            1 | 2 => {
                self.rex_mem(false, d.0, mem);
                self.bytes.extend_from_slice(&[0x0f, if bytes == 1 { 0xb6 } else { 0xb7 }]);
            }
            _ => {
                self.rex_mem(bytes == 8, d.0, mem);
                self.byte(0x8b);
            }
        }
        self.modrm_mem(d.0, mem, 1);
    }

    /// Loads an integer of 1, 2 or 4 bytes and extends its sign to 8.
    pub(super) fn load_signed(&mut self, d: Gpr, mem: Mem, bytes: usize) {
        self.rex_mem(true, d.0, mem);
        match bytes {
            1 => self.bytes.extend_from_slice(&[0x0f, 0xbe]),
            2 => self.bytes.extend_from_slice(&[0x0f, 0xbf]),
            4 => self.byte(0x63),
            _ => self.byte(0x8b),
        }
        self.modrm_mem(d.0, mem, 1);
    }

    /// Stores 1, 2, 4 or 8 bytes.
    pub(super) fn store(&mut self, mem: Mem, a: Gpr, bytes: usize) {
        self.loaded = None;
        if bytes == 2 {
            self.byte(0x66);
        }
        self.rex_mem(bytes == 8, a.0, mem);
        self.byte(if bytes == 1 { 0x88 } else { 0x89 });
        self.modrm_mem(a.0, mem, 1);
    }

    pub(super) fn mov(&mut self, d: Gpr, a: Gpr) {
        self.rex(true, d.0, a.0);
        self.byte(0x8b);
        self.modrm(d.0, a.0);
    }

    pub(super) fn mov_imm(&mut self, d: Gpr, value: u64) {
        if let Ok(short) = u32::try_from(value) {
            self.rex(false, 0, d.0);
            self.byte(0xb8 | (d.0 & 7));
            self.dword(short as i32);
        } else {
            self.rex(true, 0, d.0);
            self.byte(0xb8 | (d.0 & 7));
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(super) fn lea(&mut self, d: Gpr, mem: Mem) {
        self.rex_mem(true, d.0, mem);
        self.byte(0x8d);
        self.modrm_mem(d.0, mem, 1);
    }

    pub(super) fn alu(&mut self, op: Alu, d: Gpr, a: Gpr, bytes: usize) {
        self.rex(bytes == 8, d.0, a.0);
        self.byte(op as u8);
        self.modrm(d.0, a.0);
    }

    pub(super) fn alu_mem(&mut self, op: Alu, d: Gpr, mem: Mem, bytes: usize) {
        self.rex_mem(bytes == 8, d.0, mem);
        self.byte(op as u8);
        self.modrm_mem(d.0, mem, 1);
    }

    pub(super) fn alu_imm(&mut self, op: Alu, d: Gpr, value: i32) {
        self.rex(true, 0, d.0);
        self.byte(0x81);
        self.modrm((op as u8) >> 3, d.0);
        self.dword(value);
    }

    pub(super) fn add_to_mem(&mut self, mem: Mem, value: i8, bytes: usize) {
        self.rex_mem(bytes == 8, 0, mem);
        self.byte(0x83);
        self.modrm_mem(0, mem, 1);
        self.byte(value as u8);
    }

    pub(super) fn imul_mem(&mut self, d: Gpr, mem: Mem, bytes: usize) {
        self.rex_mem(bytes == 8, d.0, mem);
        self.bytes.extend_from_slice(&[0x0f, 0xaf]);
        self.modrm_mem(d.0, mem, 1);
    }

    pub(super) fn imul_imm(&mut self, d: Gpr, a: Gpr, value: i32) {
        self.rex(true, d.0, a.0);
        self.byte(0x69);
        self.modrm(d.0, a.0);
        self.dword(value);
    }

    pub(super) fn shift(&mut self, op: Shift, d: Gpr, bytes: usize) {
        self.rex(bytes == 8, 0, d.0);
        self.byte(0xd3);
        self.modrm(op as u8, d.0);
    }

    pub(super) fn dec(&mut self, d: Gpr) {
        self.rex(true, 0, d.0);
        self.byte(0xff);
        self.modrm(1, d.0);
    }

    pub(super) fn test(&mut self, a: Gpr, b: Gpr, bytes: usize) {
        self.rex(bytes == 8, b.0, a.0);
        self.byte(0x85);
        self.modrm(b.0, a.0);
    }

    /// Compares bits of the register with 0.
    pub(super) fn test_imm(&mut self, a: Gpr, bits: i32) {
        self.rex(false, 0, a.0);
        self.byte(0xf7);
        self.modrm(0, a.0);
        self.dword(bits);
    }

    /// Compares a byte of memory with 0.
    pub(super) fn is_zero(&mut self, mem: Mem) {
        self.rex_mem(false, 0, mem);
        self.byte(0x80);
        self.modrm_mem(7, mem, 1);
        self.byte(0);
    }

    /// 1 where the condition holds, else 0; all 8 bytes.
    pub(super) fn set(&mut self, cond: Cond, d: Gpr) {
        self.rex(false, 0, d.0);
        self.bytes.extend_from_slice(&[0x0f, 0x90 | cond as u8]);
        self.modrm(0, d.0);
        self.rex(false, d.0, d.0);
        self.bytes.extend_from_slice(&[0x0f, 0xb6]);
        self.modrm(d.0, d.0);
    }

    pub(super) fn cmov(&mut self, cond: Cond, d: Gpr, a: Gpr) {
        self.rex(true, d.0, a.0);
        self.bytes.extend_from_slice(&[0x0f, 0x40 | cond as u8]);
        self.modrm(d.0, a.0);
    }

    pub(super) fn push(&mut self, a: Gpr) {
        self.rex(false, 0, a.0);
        self.byte(0x50 | (a.0 & 7));
    }

    pub(super) fn pop(&mut self, a: Gpr) {
        self.rex(false, 0, a.0);
        self.byte(0x58 | (a.0 & 7));
    }

    pub(super) fn ret(&mut self) {
        self.byte(0xc3);
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.byte(0xe9);
        self.distance(to);
    }

    pub(super) fn jump_if(&mut self, cond: Cond, to: Label) {
        self.bytes.extend_from_slice(&[0x0f, 0x80 | cond as u8]);
        self.distance(to);
    }

    pub(super) fn call(&mut self, to: Label) {
        self.byte(0xe8);
        self.distance(to);
    }

    pub(super) fn call_reg(&mut self, a: Gpr) {
        self.rex(false, 0, a.0);
        self.byte(0xff);
        self.modrm(2, a.0);
    }

    fn distance(&mut self, to: Label) {
        self.loaded = None;
        self.jumps.push((self.bytes.len(), to));
        self.dword(0);
    }

    /// `prefetcht0`, or `prefetcht1` for the second-level cache.
    pub(super) fn prefetch(&mut self, hint: coulis_ir::Atom, mem: Mem) {
        let cache = if hint == coulis_ir::Atom::PrefetchL2 { 2 } else { 1 };
        self.rex_mem(false, cache, mem);
        self.bytes.extend_from_slice(&[0x0f, 0x18]);
        self.modrm_mem(cache, mem, 1);
    }

    pub(super) fn vzeroupper(&mut self) {
        self.bytes.extend_from_slice(&[0xc5, 0xf8, 0x77]);
    }

    // Vectors.

    /// Whether the register still holds those bytes of memory.
    pub(super) fn holds(&self, register: Vec_, mem: Mem, bytes: usize) -> bool {
        self.loaded == Some((register, mem, bytes))
    }

    /// Notes what a register was just loaded with, until it, memory or the way to this place changes.
    pub(super) fn note_loaded(&mut self, register: Vec_, mem: Mem, bytes: usize) {
        self.loaded = Some((register, mem, bytes));
    }

    /// The register that holds those bytes of memory.
    pub(super) fn holder(&self, mem: Mem, bytes: usize) -> Option<Vec_> {
        self.loaded.filter(|(_, m, b)| (*m, *b) == (mem, bytes)).map(|(register, ..)| register)
    }

    pub(super) fn forget_loaded(&mut self) {
        self.loaded = None;
    }
}

impl Asm {
    /// Adds a constant to a pointer; it may take `rcx`.
    pub(super) fn lea_far(&mut self, d: Gpr, by: i64) {
        match i32::try_from(by) {
            Ok(by) => self.lea(d, Mem::at(d, by)),
            Err(_) => {
                self.mov_imm(RCX, by as u64);
                self.alu(Alu::Add, d, RCX, 8);
            }
        }
    }
}
