//! Tables of C functions of a library that may be absent or old.
//!
//! Each function is looked up once when the library is loaded and may be missing; calling a missing one is an error
//! that names it. So a driver of any age loads, and what it lacks is reported when it is asked for.
//!
//! `cudarc` has the same functions, but it panics where the library or a function is missing, finds libraries only by
//! its own rules, and costs a minute of build for the fifty functions that are needed here.

/// Declares a struct with one field a function, and one method a function of the same name, which returns an error where
/// the function is missing or answers another code than 0.
///
/// The struct has a field `path` and a method `failure(&self, call, code)` that makes an error of a code.
macro_rules! table {
    (
        $(#[$about:meta])*
        $table:ident, $library:expr;
        $( $(#[$doc:meta])* $function:ident = $symbol:literal ( $($arg:ident : $ty:ty),* ); )*
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $table {
            path: ::std::path::PathBuf,
            $( $function: Option<unsafe extern "C" fn($($ty),*) -> ::std::ffi::c_int>, )*
        }

        impl $table {
            /// Looks up every function.
            ///
            /// # Safety
            /// The library is the one that the table is of, and stays loaded to the end of the process.
            unsafe fn of(library: &::libloading::Library, path: ::std::path::PathBuf) -> $table {
                $table {
                    path,
                    // SAFETY: the signatures are those of the library's header.
                    $( $function: unsafe { library.get($symbol.as_bytes()) }.ok().map(|symbol| *symbol), )*
                }
            }

            /// The file that was loaded.
            pub fn path(&self) -> &::std::path::Path {
                &self.path
            }

            $(
                $(#[$doc])*
                ///
                /// # Safety
                /// As the vendor's manual says of the C function.
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $function(&self, $($arg: $ty),*) -> Result<(), $crate::cuda::CudaError> {
                    let Some(function) = self.$function else {
                        let (library, path) = ($library, self.path.clone());
                        return Err($crate::cuda::CudaError::MissingFunction { library, path, function: $symbol });
                    };
                    // SAFETY: the caller's promise.
                    match unsafe { function($($arg),*) } {
                        0 => Ok(()),
                        code => Err(self.failure($symbol, code)),
                    }
                }
            )*
        }
    };
}

pub(crate) use table;
