/** Where below its staging path a volume is staged that is wanted as a block device. */
export const blockFile = 'block_device';
