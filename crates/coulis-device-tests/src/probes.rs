//! The run time itself: kernels written by hand, compiled, launched and captured.

use std::time::Instant;

use coulis_runtime::cuda::{CudaCompiler, DeviceMemory, probe};
use coulis_runtime::{Cuda, CudaOptions, Origin};

use crate::{DeviceTest, Machine, Verdict};

/// Every test of this file.
pub const TESTS: &[&DeviceTest] = &[
    &DeviceTest { name: "probes_of_the_run_time_give_the_right_results", run: probes },
    &DeviceTest { name: "several_gpus_of_one_process_work_at_the_same_time", run: several_gpus },
    &DeviceTest { name: "an_address_is_of_the_gpu_that_holds_its_memory", run: addresses },
    &DeviceTest { name: "a_cold_compile_takes_at_most_0_3_seconds", run: cold_compile },
    &DeviceTest { name: "a_kernel_from_the_disk_has_run_in_5_milliseconds", run: warm_compile },
];

/// Frozen texts of the emitter, listing 6 of the tutorial first.
const GOLDENS: &[(&str, &str)] = &[
    ("listing_6", include_str!("../../../tests/files/emit/cuda/listing_6_cross_thread.cu")),
    ("argmax_in_memory", include_str!("../../../tests/files/emit/cuda/argmax_in_memory.cu")),
    ("bytes", include_str!("../../../tests/files/emit/cuda/bytes.cu")),
    ("exponentials", include_str!("../../../tests/files/emit/cuda/exponentials.cu")),
    ("half_vectors", include_str!("../../../tests/files/emit/cuda/half_vectors.cu")),
    ("last_block", include_str!("../../../tests/files/emit/cuda/last_block.cu")),
    ("second_kernel", include_str!("../../../tests/files/emit/cuda/second_kernel.cu")),
    ("sixteenths", include_str!("../../../tests/files/emit/cuda/sixteenths.cu")),
];

fn probes(machine: &Machine) -> Result<Verdict, String> {
    run_all(&machine.cuda)?;
    Ok(Verdict::Passed)
}

fn run_all(cuda: &Cuda) -> Result<(), String> {
    for probe in probe::PROBES {
        (probe.run)(cuda).map_err(|error| format!("{}: {error}", probe.name))?;
    }
    Ok(())
}

/// The driver knows it on a thread that works with no GPU.
fn addresses(_: &Machine) -> Result<Verdict, String> {
    let options = CudaOptions::default();
    let (driver, all) = Cuda::all(&options).map_err(|error| error.to_string())?;
    for ordinal in 0..all.len() {
        let (cuda, _) = Cuda::open(ordinal, &options).map_err(|error| error.to_string())?;
        let memory = DeviceMemory::new(cuda.context(), 4096).map_err(|error| error.to_string())?;
        for pointer in [memory.pointer(), memory.pointer() + 4095] {
            let found = driver.device_of(pointer);
            if found != Some(ordinal) {
                return Err(format!("memory of GPU {ordinal} is told to be of {found:?}"));
            }
        }
    }
    Ok(Verdict::Passed)
}

/// Every GPU runs every probe, from a thread each.
fn several_gpus(_: &Machine) -> Result<Verdict, String> {
    let options = CudaOptions::default();
    let (_, all) = Cuda::all(&options).map_err(|error| error.to_string())?;
    if all.len() < 2 {
        return Ok(Verdict::Skipped(format!("{} GPU, and it takes 2", all.len())));
    }
    let on = |ordinal: usize| -> Result<(), String> {
        let (cuda, _) = Cuda::open(ordinal, &options).map_err(|error| error.to_string())?;
        run_all(&cuda).map_err(|why| format!("GPU {ordinal}: {why}"))
    };
    std::thread::scope(|scope| {
        let on = &on;
        let threads: Vec<_> = (0..all.len()).map(|ordinal| scope.spawn(move || on(ordinal))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread of a GPU panicked".to_owned()))
        })
    })?;
    Ok(Verdict::Passed)
}

/// The first compilation of a process reads the library, which is not the kernel's; those after it count.
fn cold_compile(machine: &Machine) -> Result<Verdict, String> {
    let (compiler, _) = CudaCompiler::open(&CudaOptions::default().search(), None);
    let arch = &machine.cuda.facts().arch;
    let (name, module) = probe::modules().swap_remove(1);
    let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let texts = [(name, module.text.as_str()); 2].into_iter().chain(GOLDENS.iter().copied());
    for (round, (name, text)) in texts.enumerate() {
        let text = format!("{text}// {round} {}\n", stamp.as_nanos());
        let start = Instant::now();
        let (_, origin) = compiler.cubin(name, &text, arch).map_err(|error| error.to_string())?;
        let seconds = start.elapsed().as_secs_f64();
        println!("  {name}: compiled in {seconds:.3} s");
        if origin != Origin::Compiled {
            return Err("a new text was found on the disk".to_owned());
        }
        if round > 0 && seconds > 0.3 && machine.effort == crate::Effort::Full {
            return Err(format!("{name} took {seconds:.3} s"));
        }
    }
    Ok(Verdict::Passed)
}

fn warm_compile(machine: &Machine) -> Result<Verdict, String> {
    let (compiler, _) = CudaCompiler::open(&CudaOptions::default().search(), None);
    let arch = &machine.cuda.facts().arch;
    let (name, module) = probe::modules().swap_remove(1);
    compiler.cubin(name, &module.text, arch).map_err(|error| error.to_string())?;
    let start = Instant::now();
    let (_, origin) = compiler.cubin(name, &module.text, arch).map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    println!("  found in {:.2} ms", seconds * 1e3);
    if origin != Origin::Disk {
        return Err("a compiled text was not found on the disk".to_owned());
    }
    from_disk_to_results(machine)
}

/// A device that has loaded nothing yet takes cubins from the disk, launches five times and reads what they wrote.
fn from_disk_to_results(machine: &Machine) -> Result<Verdict, String> {
    let probe = probe::PROBES[0];
    (probe.run)(&machine.cuda).map_err(|error| error.to_string())?;
    let (cuda, _) = Cuda::open(0, &CudaOptions::default()).map_err(|error| error.to_string())?;
    let start = Instant::now();
    (probe.run)(&cuda).map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    println!("  {}: from the disk to the results of five launches in {:.2} ms", probe.name, seconds * 1e3);
    if seconds > 5e-3 && machine.effort == crate::Effort::Full {
        return Err(format!("took {:.2} ms", seconds * 1e3));
    }
    Ok(Verdict::Passed)
}
