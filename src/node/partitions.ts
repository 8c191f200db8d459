import { namesIn, textOf } from './sysfs.ts';

/** `major:minor` of the partitions of the disk `major:minor`. */
export async function partitionsOf(disk: string): Promise<readonly string[]> {
  const place = `/sys/dev/block/${disk}`;
  const found = (await namesIn(place)).map(async (name) => {
    const isPartition = (await textOf(`${place}/${name}/partition`)) !== undefined;
    return isPartition ? await textOf(`${place}/${name}/dev`) : undefined;
  });
  return (await Promise.all(found)).filter((number) => number !== undefined);
}
