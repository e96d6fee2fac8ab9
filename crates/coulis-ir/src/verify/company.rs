//! The blocks whose threads are looked at together.

use super::witness::Scene;

/// Whose threads a crowd is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Company {
    /// Those of the first block.
    Block,
    /// Those of the first block, of the next one along each axis, and of the same one of the next cluster.
    Neighbours,
    /// Those of the blocks of the grid: of all where these have few threads, else of the first ones, of those at powers of 2
    /// and of the last one along each axis.
    Grid,
}

/// Threads of a grid that are looked at.
const MOST_THREADS: i128 = 8192;

impl Company {
    /// Their blocks, each once.
    pub fn blocks(self, scene: &Scene) -> Vec<[i128; 3]> {
        let mut blocks = vec![[0i128; 3]];
        let most = (MOST_THREADS / scene.block.iter().product::<i128>()).max(1);
        if self == Company::Grid && scene.grid.iter().fold(1, |n: i128, m| n.saturating_mul(*m)) <= most {
            let [nx, ny, nz] = scene.grid;
            return (0..nx * ny * nz).map(|i| [i % nx, i / nx % ny, i / (nx * ny)]).collect();
        }
        let axes = (0..3).filter(|axis| self != Company::Block && scene.grid[*axis] > 1);
        for axis in axes {
            let near = vec![1, scene.cluster[axis]];
            let steps = match self {
                Company::Block | Company::Neighbours => near,
                Company::Grid => {
                    let powers =
                        (0..i128::BITS - 1).map(|i| 1i128 << i).take_while(|n| *n < scene.grid[axis]);
                    near.into_iter().chain(powers).chain([scene.grid[axis] - 1]).chain(2..most / 8).collect()
                }
            };
            for step in steps {
                let block: [i128; 3] = std::array::from_fn(|i| if i == axis { step } else { 0 });
                if step < scene.grid[axis] && !blocks.contains(&block) {
                    blocks.push(block);
                }
            }
        }
        blocks
    }
}
